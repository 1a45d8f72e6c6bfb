"""The map of the course that a learner's progress is laid on: made by the build from the lessons and labs themselves."""

import json
import re
from collections.abc import Iterator
from typing import Any

from traceonce.author.course import Course, Finding, Pair
from traceonce.author.predictions import predictions_of
from traceonce.grade.guide import read_guide
from traceonce.grade.lab import load_lab

PLACE = "src/traceonce/show/course_map.json"

_TITLE = re.compile(r"^# (?:\d\d[a-z]? ?·? ?)?(?P<title>.+)$", re.MULTILINE)
_MINUTES = re.compile(r"\bAbout (\d+) minutes\b")


def course_map(course: Course) -> list[dict[str, Any]]:
    """One entry for each notebook of a lesson, in reading order; the last one of a lesson names its lab."""
    entries: list[dict[str, Any]] = []
    labs = {pair.name[3:5]: pair for pair in course.labs}
    for pair in course.lessons:
        first = pair.cells[0].source
        title, minutes = _TITLE.search(first), _MINUTES.search(first)
        entries.append(
            {
                "lesson": pair.lesson[:2],
                "name": pair.name.partition("_")[0],
                "title": title["title"] if title else pair.name,
                "notebook": str(pair.notebook.relative_to("course")),
                "minutes": int(minutes[1]) if minutes else 0,
                "predictions": [asked.id for asked in predictions_of(pair)[0]],
                "lab": None,
            }
        )
        if pair.lesson[:2] in labs:
            for earlier in entries[:-1]:
                if earlier["lesson"] == pair.lesson[:2]:
                    earlier["lab"] = None
            entries[-1]["lab"] = _lab(course, labs[pair.lesson[:2]])
    return entries


def _lab(course: Course, pair: Pair) -> dict[str, Any]:
    return {"name": pair.name, "minutes": read_guide(load_lab(pair.name, root=course.root)).minutes}


def build_map(course: Course) -> str:
    """Write the map where it differs; says what was done."""
    path = course.root / PLACE
    wanted = _text(course)
    if path.is_file() and path.read_text("utf-8") == wanted:
        return "up to date"
    path.write_text(wanted, "utf-8")
    return "written"


def faults_of_map(course: Course) -> Iterator[Finding]:
    """A map that is not what the lessons say; and what the index says of them otherwise."""
    path = course.root / PLACE
    if path.parent.is_dir():
        wanted = _text(course)
        if not path.is_file() or path.read_text("utf-8") != wanted:
            yield Finding(PLACE, "it is not what the lessons and labs say now: run 'traceonce author build'.")
        yield from _faults_of_index(course)


def _faults_of_index(course: Course) -> Iterator[Finding]:
    """The index is written by hand; its links, titles and minutes must be the lessons' own."""
    index = next((pair for pair in course.pairs if pair.kind == "index"), None)
    text = "\n".join(cell.source for cell in index.cells if cell.cell_type == "markdown") if index else ""
    for entry in course_map(course):
        row = next(
            (line for line in text.splitlines() if line.startswith("| [") and f"]({entry['notebook']})" in line), ""
        )
        lab = entry["lab"]
        wanted = [f"[{entry['name']} {entry['title']}]", f"| {entry['minutes']} |"]
        wanted += [f"| [{lab['minutes']}](../labs/{lab['name']}.ipynb) |"] if lab else []
        for piece in wanted:
            if piece not in row:
                yield Finding("course/index.py", f"the row of {entry['notebook']} in the map has not {piece!r}.")


def _text(course: Course) -> str:
    return json.dumps(course_map(course), indent=1, ensure_ascii=False) + "\n"
