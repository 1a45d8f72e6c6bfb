"""Reports from records: Gradescope's ``results.json``, JUnit XML, a CSV with nbgrader's columns, and a feedback page.

Where ``TRACEONCE_COURSE_URL`` is set to the address under which learners find ``course/``, sections of the lessons are links.

What a learner reads holds titles, hints, reasons and the learner's own lines; never an assert's source, a note for the
teacher, or what a hidden assert had expected.
"""

import csv
import html
import io
import json
import os
import re
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from urllib.parse import quote

from traceonce.grade.guide import Section
from traceonce.grade.record import AssertRecord, CellRecord, Record, StudentLine, TaskRecord

COURSE_URL = "TRACEONCE_COURSE_URL"

CSV_COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
)
"""The columns of ``nbgrader export``, in its order. What a notebook does not tell stays empty."""

_STATUS_SENTENCES = {
    "passed": "Full marks: every hidden assert passed.",
    "failed": "Some hidden asserts failed. Each says below what to look at.",
    "error": "A cell of yours raised an exception.",
    "timeout": "Your code ran out of time.",
    "memory": "Your code ran out of memory.",
    "crashed": "Your code ended or crashed the Python process.",
    "missing": "Something that is graded is not in the notebook.",
    "malformed": "The notebook could not be graded as it is.",
    "tampering": "Your code interfered with the grader. Your teacher will look at it.",
}
_OUTCOME_WORDS = {"passed": "passed", "failed": "failed", "unchecked": "could not be checked"}


def number(points: float) -> str:
    """Points without needless decimals."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def gradescope(record: Record) -> str:
    """``results.json`` as Gradescope documents it."""
    tests = [
        {
            "name": found.title,
            "name_format": "text",
            "number": str(position),
            "score": found.earned,
            "max_score": found.points,
            "status": "passed" if found.outcome == "passed" else "failed",
            "output": "\n".join(_assert_lines(found, record)),
            "output_format": "text",
            "tags": [found.task],
            "visibility": "visible",
        }
        for position, found in enumerate(record.asserts, start=1)
    ]
    document = {
        "score": record.score,
        "execution_time": round(record.seconds),
        "output": "\n".join(_summary_lines(record)),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"status": record.status, "lab": record.lab, "tier": record.tier},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def grades_csv(records: Iterable[Record]) -> Iterator[str]:
    """One row a submission, in nbgrader's columns; given line by line."""
    line = io.StringIO()
    writer = csv.DictWriter(line, CSV_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for record in records:
        yield line.getvalue()
        line.seek(0)
        line.truncate()
        writer.writerow(
            {
                "assignment": record.lab,
                "student_id": _plain_cell(record.student),
                "raw_score": record.score,
                "late_submission_penalty": 0.0,
                "score": record.score,
                "max_score": record.max_score,
            }
        )
    yield line.getvalue()


def junit(records: Iterable[Record]) -> Iterator[str]:
    """JUnit XML: a suite for each submission, a case for each hidden assert. A submission that was not run is an error. Given suite by suite."""
    yield "<?xml version='1.0' encoding='utf-8'?>\n<testsuites name=\"traceonce grade\">\n"
    for record in records:
        suite = _suite(record)
        ET.indent(suite)
        yield ET.tostring(suite, encoding="unicode") + "\n"
    yield "</testsuites>\n"


def _suite(record: Record) -> ET.Element:
    failed = sum(found.outcome == "failed" for found in record.asserts)
    unchecked = sum(found.outcome == "unchecked" for found in record.asserts)
    suite = ET.Element(
        "testsuite",
        name=_xml(f"{record.submission}: {record.lab}"),
        tests=str(len(record.asserts) or 1),
        failures=str(failed),
        errors=str(0 if record.asserts else 1),
        skipped=str(unchecked),
        time=f"{record.seconds:.3f}",
    )
    for found in record.asserts:
        case = ET.SubElement(
            suite, "testcase", classname=_xml(f"{record.submission}.{found.task}"), name=_xml(found.title)
        )
        if found.outcome != "passed":
            kind = "failure" if found.outcome == "failed" else "skipped"
            lines = _assert_lines(found, record)
            ET.SubElement(case, kind, message=_xml(lines[0] if lines else "")).text = _xml("\n".join(lines))
    if not record.asserts:
        case = ET.SubElement(suite, "testcase", classname=_xml(record.submission), name=record.status)
        ET.SubElement(case, "error", message=record.status).text = _xml("\n".join(_summary_lines(record)))
    return suite


def _xml(text: str) -> str:
    """Text without the characters that XML has no place for."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _plain_cell(value: str) -> str:
    """A stranger's text that a spreadsheet will not take for a formula."""
    return f"'{value}" if value[:1] in ("=", "+", "-", "@") else value


# Feedback -------------------------------------------------------------------------------------------------------------


def _summary_lines(record: Record) -> list[str]:
    lines = [_STATUS_SENTENCES[record.status]]
    if record.defect:
        lines = []
    lines += record.reasons
    failed_cells = [cell for cell in record.cells if cell.why and cell.kind == "solution"]
    lines += [f"Cell {cell.grade_id}: {cell_sentence(cell)}" for cell in failed_cells]
    if time := _time_sentence(record):
        lines.append(time)
    return lines


def _time_sentence(record: Record) -> str:
    """What the lab is meant to take, and how much of that the tasks are that are not right yet."""
    if not record.minutes:
        return ""
    whole = f"The lab is meant to take about {record.minutes} minutes"
    open_tasks = {found.task for found in record.asserts if found.outcome != "passed"}
    minutes = {task.heading: task.minutes for task in record.tasks if task.name in open_tasks}  # shared by its tasks
    if not any(minutes.values()):
        return f"{whole}."
    return f"{whole}, of which the tasks that are not right yet are about {sum(minutes.values())}."


def cell_sentence(cell: CellRecord) -> str:
    """Why a cell did not run to its end."""
    return f"{cell.reason}{_in_words(cell.where)}"


def _in_words(where: StudentLine | None) -> str:
    return f" (line {where.line} of {where.cell}: {where.text})" if where else ""


def _assert_lines(found: AssertRecord, record: Record) -> list[str]:
    if found.outcome == "passed":
        return []
    lines = [found.reason] if found.reason else []
    if found.where:
        lines.append(f"Line {found.where.line} of your cell {found.where.cell}: {found.where.text}")
    if found.outcome == "failed":
        lines.append(f"Hint: {found.hint}")
        sections = _task(record, found.task).sections
        if sections:
            lines.append("Look back at: " + "; ".join(map(_section_in_words, sections)))
    return lines


def _task(record: Record, name: str) -> TaskRecord:
    return next((task for task in record.tasks if task.name == name), TaskRecord(name))


def _section_in_words(section: Section) -> str:
    return f"“{section.title}” in {_address(section) or _notebook(section)}"


def _notebook(section: Section) -> str:
    return PurePosixPath(section.notebook).name


def _address(section: Section) -> str | None:
    """Where a learner finds a section on the web; `None` where that was not said."""
    base = os.environ.get(COURSE_URL, "").rstrip("/")
    if not base.startswith(("https://", "http://")):
        return None
    place = quote(section.notebook.removeprefix("course/"))
    return f"{base}/{place}" + (f"#{quote(section.anchor)}" if section.anchor else "")


def _task_title(task: TaskRecord) -> str:
    """A task's name, and the minutes that it is meant to take."""
    return f"{task.name} (about {task.minutes} minutes)" if task.minutes else task.name


def feedback_text(record: Record) -> str:
    """The feedback page as plain text."""
    title = record.lab or record.file
    lines = [f"{title}: {number(record.score)} of {number(record.max_score)} points", "=" * 60]
    lines += _summary_lines(record)
    for name in dict.fromkeys(found.task for found in record.asserts):
        heading = _task_title(_task(record, name))
        lines += ["", heading, "-" * len(heading), task_text(record, name)]
    return "\n".join(lines) + "\n"


def task_text(record: Record, task: str) -> str:
    """The asserts of one task as plain text; why there are none where it could not be graded at all."""
    found = [one for one in record.asserts if one.task == task]
    if not found:
        return "\n".join(_summary_lines(record))
    lines = []
    for one in found:
        lines.append(f"[{_OUTCOME_WORDS[one.outcome]}] {one.title} ({number(one.earned)}/{number(one.points)})")
        lines += [textwrap.indent(line, "    ") for line in _assert_lines(one, record)]
    return "\n".join(lines)


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 1.8rem; font-family: ui-monospace, monospace; }
ul { list-style: none; padding: 0; } li { border-left: .3rem solid; padding: .3rem .8rem; margin: .5rem 0; }
.passed { border-color: #2e8b57; } .failed { border-color: #c0392b; } .unchecked { border-color: #888; }
.word { font-weight: 600; } .points { float: right; } p { margin: .3rem 0; }
pre { overflow-x: auto; padding: .4rem .6rem; background: color-mix(in srgb, currentColor 8%, transparent); }
""".strip()


def page(title: str, style: str, body: Iterable[str]) -> str:
    """One file of HTML with a heading, with nothing fetched from anywhere. `title` and `body` are HTML."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{style}</style></head><body>",
        f"<h1>{title}</h1>",
        *body,
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def feedback_html(record: Record) -> str:
    """The feedback page in HTML."""
    score = f"{number(record.score)} of {number(record.max_score)} points"
    parts = [f"<p>{html.escape(line)}</p>" for line in _summary_lines(record)]
    for task in dict.fromkeys(found.task for found in record.asserts):
        parts += [f"<h2>{html.escape(_task_title(_task(record, task)))}</h2><ul>"]
        parts += [_assert_html(found, record) for found in record.asserts if found.task == task]
        parts.append("</ul>")
    return page(f"{html.escape(record.lab or record.file)}: {score}", _STYLE, parts)


def _assert_html(found: AssertRecord, record: Record) -> str:
    word = _OUTCOME_WORDS[found.outcome]
    parts = [
        f'<li class="{found.outcome}"><span class="points">{number(found.earned)}/{number(found.points)}</span>',
        f'<span class="word">{word[0].upper()}{word[1:]}:</span> {html.escape(found.title)}',
    ]
    if found.outcome != "passed":
        if found.reason:
            parts.append(f"<p>{html.escape(found.reason)}</p>")
        if found.where:
            place = f"Line {found.where.line} of your cell {found.where.cell}:"
            parts.append(f"<p>{html.escape(place)}</p><pre>{html.escape(found.where.text)}</pre>")
        if found.outcome == "failed":
            parts.append(f"<p>Hint: {html.escape(found.hint)}</p>")
            if sections := _task(record, found.task).sections:
                parts.append(f"<p>Look back at: {'; '.join(map(_section_html, sections))}</p>")
    return "".join((*parts, "</li>"))


def _section_html(section: Section) -> str:
    title = html.escape(section.title)
    if address := _address(section):
        return f'<a href="{html.escape(address)}">{title}</a>'
    return f"“{title}” in {html.escape(_notebook(section))}"
