"""Where a learner stands on the map of the course, and the next step.

The map is `course_map.json`, made by `traceonce author build` from the lessons and labs.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

from traceonce.inventory.questions import questions
from traceonce.inventory.record import Record
from traceonce.show import ledger

LABS = "labs"
"""The section of the progress file that holds what was graded."""


@dataclass(frozen=True)
class Stop:
    """One notebook of a lesson. A lesson has one or two; the last one names its lab, if it has one.

    **Arguments**

    - `lesson`: `"08"`; `name`: `"08b"`; `title`: without the number.
    - `notebook`: its place in the course; `minutes`: what it is meant to take.
    - `predictions`: the ids that it asks, in order.
    - `lab`, `lab_minutes`: the lab's name, or None.
    """

    lesson: str
    name: str
    title: str
    notebook: str
    minutes: int
    predictions: tuple[str, ...]
    lab: str | None
    lab_minutes: int


@dataclass(frozen=True)
class LabRecord:
    """What grading a lab gave: points (or cells, where only visible asserts ran) out of how many, and when."""

    points: float
    of: float
    hidden: bool
    at: str


@cache
def stops() -> tuple[Stop, ...]:
    """The notebooks of all lessons in reading order."""
    entries = json.loads(Path(__file__).with_name("course_map.json").read_text("utf-8"))
    return tuple(
        Stop(
            entry["lesson"],
            entry["name"],
            entry["title"],
            entry["notebook"],
            entry["minutes"],
            tuple(entry["predictions"]),
            entry["lab"] and entry["lab"]["name"],
            entry["lab"]["minutes"] if entry["lab"] else 0,
        )
        for entry in entries
    )


def graded_labs(path: Path) -> dict[str, LabRecord]:
    """Lab -> what grading it last gave, from the progress file. What is no such record is passed over and stays in the file."""
    stored = ledger.section(path, LABS)
    found = {}
    for name, entry in stored.items() if isinstance(stored, dict) else ():
        match entry:
            case {
                "points": int() | float() as points,
                "of": int() | float() as of,
                "hidden": bool(hidden),
                "at": str(at),
            }:
                found[str(name)] = LabRecord(points, of, hidden, at)
    return found


def note_lab(name: str, points: float, of: float, *, hidden: bool) -> str | None:
    """Keep what grading a lab gave; None, or a sentence where the progress file did not take it."""
    entry = {"points": points, "of": of, "hidden": hidden, "at": ledger.now()}

    def change(stored: Any) -> dict[str, Any]:
        return {**stored, name: entry} if isinstance(stored, dict) else {name: entry}

    return ledger.update_section(ledger.progress_path(), LABS, change)


def next_steps(
    predictions: Mapping[str, ledger.Asked], labs: Mapping[str, LabRecord], inventory: Record | None
) -> Iterator[str]:
    """What to do next, one sentence each: a lesson, a lab, the inventory."""
    lesson = next((stop for stop in stops() if _open(stop, predictions)), None)
    begun = any(asked.measured is not None for asked in predictions.values())
    if not begun and not (inventory and inventory.is_closed("before")):
        yield f"Before lesson 01: the inventory, {len(questions())} questions in inventory/inventory.ipynb, about 20 minutes."
    if lesson is not None:
        waiting = _open(lesson, predictions)
        name = f"lesson {lesson.name}, {lesson.title}"
        if len(waiting) == len(lesson.predictions):
            yield f"Next lesson: {name} ({lesson.minutes} minutes)."
        else:
            done = len(lesson.predictions) - len(waiting)
            yield f"Go on with {name}: {done} of {len(lesson.predictions)} predictions are measured, the next is {waiting[0]}."
    yield from _next_lab(predictions, labs)
    if lesson is None and not (inventory and inventory.after.handed_in):
        yield 'All lessons are done: take the inventory again, with inventory("after") in inventory/inventory.ipynb.'


def _command() -> str:
    """`traceonce` as a terminal in the checkout finds it: `make learn` activates no environment."""
    return ".venv/bin/traceonce" if Path(sys.prefix).name == ".venv" and not which("traceonce") else "traceonce"


def _next_lab(predictions: Mapping[str, ledger.Asked], labs: Mapping[str, LabRecord]) -> Iterator[str]:
    for number, stop in enumerate(stops()):
        if stop.lab is None or any(
            _open(part, predictions) for part in stops()[: number + 1] if part.lesson == stop.lesson
        ):
            continue
        graded = labs.get(stop.lab)
        if graded is None:
            yield (
                f"Next lab: {stop.lab} ({stop.lab_minutes} minutes), not graded yet. "
                f"{_command()} grade --trusted work/labs/{stop.lab}.ipynb runs its visible asserts."
            )
            return
        if graded.points < graded.of:
            kind = "points" if graded.hidden else "cells with visible asserts"
            yield f"Go on with {stop.lab}: {graded.points:g} of {graded.of:g} {kind}."
            return


def _open(stop: Stop, predictions: Mapping[str, ledger.Asked]) -> list[str]:
    """The predictions of a notebook whose evidence has not run."""
    return [id for id in stop.predictions if id not in predictions or predictions[id].measured is None]
