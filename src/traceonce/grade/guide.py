"""What the text of a lab says beside its tasks: how many minutes they are meant to take, and where the lesson is about them.

Read from the lab's own words, so that a learner's notebook and their page of feedback say the same::

    ## Task 4 · checked_set

    *6 minutes.* `checked_set(array, index, value)` returns …
    Look back at [Arrays refuse to be changed](../course/01_pure_functions/01_pure_functions.ipynb#Arrays-refuse-to-be-changed).
"""

import itertools
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from traceonce.grade.lab import Lab
from traceonce.headings import headings

_LAB_MINUTES = re.compile(r"\bAbout (?:(\d+)\s+minutes|an\s+hour)\b")
_TASK_MINUTES = re.compile(r"^\*(\d+) minutes\b", re.MULTILINE)
_LESSON_LINK = re.compile(r"\[(?P<words>[^\]]+)\]\(\.\./(?P<place>course/[^)#\s]+\.ipynb)(?:#(?P<anchor>[^)\s]+))?\)")


@dataclass(frozen=True)
class Section:
    """A section of a lesson: its title, the notebook (from the root of the course), and the heading in a link; empty where all of it is meant."""

    title: str
    notebook: str
    anchor: str = ""


@dataclass(frozen=True)
class TaskGuide:
    """What a lab says about one task.

    **Arguments**

    - `heading`: of the part of the lab that the task stands in; two tasks that share one share its minutes.
    - `minutes`: 0 where the lab does not say.
    - `sections`: where the lesson is about it.
    """

    heading: str = ""
    minutes: int = 0
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True)
class Guide:
    """What a lab says about itself, and about each task by its `grade_id`."""

    minutes: int
    tasks: dict[str, TaskGuide]


@dataclass
class _Part:
    """A part of a lab, from one heading to the next: its text, and the tasks that stand in it."""

    heading: str = ""
    text: str = ""
    tasks: list[str] = field(default_factory=list)


def read_guide(lab: Lab) -> Guide:
    """The guide in a lab's text. A task that names no section of the lesson has those that the text before all tasks names."""
    parts = [_Part()]
    for cell in lab.cells:
        if cell.kind == "markdown":
            if found := [heading for heading in headings(cell.source) if heading.level == 2]:
                parts.append(_Part(found[-1].text))
            parts[-1].text += cell.source + "\n\n"
        elif cell.kind == "solution":
            parts[-1].tasks.append(cell.grade_id)
    opening = "".join(part.text for part in itertools.takewhile(lambda part: not part.tasks, parts))
    tasks = {
        name: TaskGuide(part.heading, _minutes(_TASK_MINUTES, part.text), sections(part.text) or sections(opening))
        for part in parts
        for name in part.tasks
    }
    return Guide(_minutes(_LAB_MINUTES, opening), tasks)


def _minutes(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    if found is None:
        return 0
    return int(found[1]) if found[1] else 60  # an hour


def sections(text: str) -> tuple[Section, ...]:
    """The sections of lessons that a text links to, in order."""
    return tuple(
        Section(" ".join(link["words"].split()), link["place"], unquote(link["anchor"] or ""))
        for link in _LESSON_LINK.finditer(text)
    )
