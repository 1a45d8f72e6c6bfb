"""The public reports that the course answers, gathered from the lessons' tables "Seen in public" and from the labs' texts.

Nothing is written twice: what was seen stands in a lesson's table, which also names the section that answers it. A section
that is named there and is no heading of the lesson stops the build.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from notebooks import joined, load, sections

from traceonce.headings import Heading, plain

_TABLE = "**Seen in public.**"
_LINK = re.compile(r"\[(?P<name>[^\]]+)\]\((?P<address>https://[^)\s]+/(?:issues|pull|discussions)/\d+)\)")
_ITALIC = re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)")


@dataclass(frozen=True)
class Place:
    """A section of a notebook: the file below the course's root, and the heading, or None for all of it."""

    path: Path
    heading: Heading | None = None


@dataclass
class Report:
    """One public report: its name and address, what was seen in the words of each lesson, and where it is answered."""

    name: str
    address: str
    seen: list[str] = field(default_factory=list)
    lessons: list[Place] = field(default_factory=list)
    labs: list[Place] = field(default_factory=list)


def gather(root: Path, lessons: list[Path], labs: list[Path]) -> list[Report]:
    """The reports in the order of the lessons; paths are relative to the root."""
    found: dict[str, Report] = {}
    for lesson in lessons:
        known = sections(root / lesson)
        for cell in load(root / lesson)["cells"]:
            text = joined(cell["source"])
            if cell["cell_type"] == "markdown" and text.lstrip().startswith(_TABLE):
                _read_table(text, lesson, known, found)
    for lab in labs:
        text = "\n".join(joined(cell["source"]) for cell in load(root / lab)["cells"])
        for address in dict.fromkeys(match["address"] for match in _LINK.finditer(text)):
            if address in found:
                found[address].labs.append(Place(lab))
    return list(found.values())


def _read_table(text: str, lesson: Path, known: list[Heading], found: dict[str, Report]) -> None:
    intro = text[: text.index("\n|")]
    by_row = _ITALIC.search(intro)
    for line in text.splitlines():
        links = list(_LINK.finditer(line)) if line.startswith("| [") else []
        if not links:
            continue
        _, seen, where = (cell.strip() for cell in line.strip().strip("|").split(" | "))
        if by_row is not None:
            # The table names rows of another one; a section of its own may stand in the row.
            own = _ITALIC.search(seen)
            where = own[1] if own else by_row[1]
            seen = re.sub(r" *\(\*[^*]+\*\)", "", seen)
        places = [Place(lesson, _heading(part, lesson, known)) for part in where.split("; ")]
        for link in links:
            report = found.setdefault(link["address"], Report(link["name"], link["address"]))
            if seen not in report.seen:
                report.seen.append(seen)
            report.lessons += places


def _heading(name: str, lesson: Path, known: list[Heading]) -> Heading:
    for heading in known:
        if plain(heading.text).startswith(plain(name.strip())):
            return heading
    raise SystemExit(f"{lesson}: its table of public reports names the section {name!r}, and no heading begins so.")
