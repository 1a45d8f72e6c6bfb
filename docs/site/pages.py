"""The pages that are written for the site alone: the front page, the proof of the graders in one table, the public reports."""

import re
from dataclasses import dataclass
from pathlib import Path

from notebooks import sections
from reports import Place, Report, gather

from traceonce.headings import Heading

_SUMMARY = re.compile(r"^(\d+) hidden asserts, (\d+) points, (\d+) wrong answers\.$", re.MULTILINE)
_ALTERNATIVE = re.compile(r"^\| `\w+` \| another right answer ", re.MULTILINE)

# A lesson's remark that another one runs it: here the next column says so.
_CROSS = re.compile(r" \(run in lesson \d\d\)")


@dataclass(frozen=True)
class Sources:
    """What the site shows, as paths below the project's root, in the order in which it is shown."""

    root: Path
    lessons: list[Path]
    references: list[Path]
    labs: list[Path]
    docs: list[Path]
    proofs: list[Path]


def title(path: Path) -> str:
    """The title of a notebook or page."""
    if path.suffix == ".ipynb":
        return sections(path)[0].text
    return re.sub(r"^# ", "", path.read_text("utf-8").split("\n", 1)[0])


def front(sources: Sources, text: str, picture: str) -> str:
    """The front page: its text with a stored chart in it, and the tables of contents of the whole site."""
    trees = [
        (
            "The course",
            ["The map of the course <course/index.ipynb>", *map(str, sources.lessons), *map(str, sources.references)],
        ),
        ("Labs", [str(path) for path in sources.labs]),
        ("Evidence", ["proof.md", "reports.md"]),
        ("Documentation", [str(path) for path in sources.docs]),
    ]
    listed = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```"])
        for caption, entries in trees
    ]
    return "\n\n".join([text.replace("<!-- chart -->", picture), *listed]) + "\n"


def proof(sources: Sources) -> str:
    """One row a lab: how many asserts judge it, and which answers they were proven against."""
    rows, totals = [], [0, 0, 0, 0]
    for path, lab in zip(sources.proofs, sources.labs, strict=True):
        text = (sources.root / path).read_text("utf-8")
        summary = _SUMMARY.search(text)
        if summary is None:
            raise SystemExit(f"{path}: it does not say how many asserts, points and wrong answers there are.")
        asserts, points, wrong = map(int, summary.groups())
        numbers = [asserts, points, len(_ALTERNATIVE.findall(text)) + 1, wrong]
        totals = [total + number for total, number in zip(totals, numbers, strict=True)]
        rows.append(f"| [{title(sources.root / lab)}](/{path}) | " + " | ".join(map(str, numbers)) + " |")
    head = "| lab | hidden asserts | points | right answers | wrong answers |\n|---|---:|---:|---:|---:|"
    tree = "\n".join(["```{toctree}", ":hidden:", "", *map(str, sources.proofs), "```"])
    return f"""# The proof of the graders

A grader that nobody has seen fail proves nothing. So each lab comes with right answers in several styles and with wrong ones,
one for each mistake that people make. The real grader judges all of them: every right answer gets full marks on every seed,
every wrong answer fails at the assert that it was written for and shows the hint that helps, every assert is failed by at least one
wrong answer, and the untouched starter gets nothing.

The tables below were written by that run, and a change to a lab that is not followed by a new proof stops the checks.
[Grading](/docs/grading.md) says how student code is kept away from the asserts.

{head}
{chr(10).join(rows)}
| **together** | {" | ".join(f"**{number}**" for number in totals)} |

{tree}
"""


def reports(sources: Sources) -> str:
    """One row a public report: what was seen, and where the course answers it."""
    found = gather(sources.root, sources.lessons, sources.labs)
    rows = "\n".join(_report_row(sources, report) for report in found)
    return f"""# The public reports answered

People reported each of these from their own work. The course answers them with cells that you run: the lesson's section shows the
cause and the repair, and a lab lets you meet it again. {len(found)} reports, in the order of the lessons.

| report | what was seen | shown and repaired in | met again in |
|---|---|---|---|
{rows}
"""


def _report_row(sources: Sources, report: Report) -> str:
    lessons = dict.fromkeys(_link(sources.root, place) for place in report.lessons)
    labs = dict.fromkeys(_link(sources.root, place) for place in report.labs)
    seen = "; ".join(_CROSS.sub("", text) for text in report.seen)
    return f"| [{report.name}]({report.address}) | {seen} | {'<br>'.join(lessons)} | {'<br>'.join(labs) or '–'} |"


def _link(root: Path, place: Place) -> str:
    number = title(root / place.path).split(" · ")[0]
    if place.heading is None:
        return f"[{number}](/{place.path})"
    return f"[{number}, {_short(place.heading)}](</{place.path}#{place.heading.anchor}>)"


def _short(heading: Heading) -> str:
    return heading.text.replace("|", "\\|")
