"""Progress: what was predicted and what was measured, as a record, a table and a panel."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from traceonce.inventory.export import table
from traceonce.inventory.record import WHEN, Record
from traceonce.show import frontend, ledger
from traceonce.show.course_map import LabRecord, graded_labs, next_steps
from traceonce.show.survey import gain_html, gain_table, read_record, state_of


@dataclass(frozen=True)
class LessonProgress:
    """The predictions of one lesson: how many were asked, answered in time, and measured as predicted."""

    lesson: str
    asked: int
    predicted: int
    revealed: int
    as_measured: int


@dataclass(frozen=True)
class Progress:
    """What the progress file says, and what to do `next`. `str()` of it is a table; in a notebook it shows a panel."""

    path: Path
    lessons: tuple[LessonProgress, ...]
    predictions: tuple[ledger.Asked, ...]
    trouble: str | None = None
    labs: Mapping[str, LabRecord] = field(default_factory=dict)
    inventory: Record | None = None
    next: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The record as plain lists and dictionaries, for `--json`."""
        return {
            "path": str(self.path),
            "trouble": self.trouble,
            "lessons": [asdict(lesson) for lesson in self.lessons],
            "predictions": [
                asdict(asked) | {"counted": asked.counted and asked.counted.choice, "as_measured": asked.as_measured}
                for asked in self.predictions
            ],
            "labs": {name: asdict(lab) for name, lab in self.labs.items()},
            "inventory": self.inventory and self.inventory.as_json(),
            "next": list(self.next),
        }

    def __str__(self) -> str:
        return "\n".join(_text(self))

    def __repr__(self) -> str:
        return f"<Progress of {len(self.predictions)} predictions in {len(self.lessons)} lessons>"

    def html(self) -> str:
        """The panel: a heading, a table a lesson can be found in, and each prediction folded away under it."""
        return "".join(_html(self))

    def _ipython_display_(self) -> None:
        frontend.show_panel(
            self, "Your progress is shown here while the notebook runs; print(progress()) gives it as text."
        )


def progress(path: Path | None = None) -> Progress:
    """What has been predicted, measured, graded and answered so far, from the progress file. Never raises for a bad file."""
    path = ledger.progress_path() if path is None else path
    read = ledger.read(path)
    predictions = tuple(sorted(read.predictions.values(), key=lambda asked: asked.id))
    lessons = tuple(_lesson(name, tuple(group)) for name, group in groupby(predictions, key=_lesson_of))
    labs = graded_labs(path)
    record = read_record(path)
    steps = () if read.trouble else tuple(next_steps(read.predictions, labs, record))
    return Progress(path, lessons, predictions, read.trouble, labs, record, steps)


def _lesson_of(asked: ledger.Asked) -> str:
    return asked.id.partition("-")[0]


def _lesson(name: str, predictions: tuple[ledger.Asked, ...]) -> LessonProgress:
    return LessonProgress(
        lesson=name,
        asked=len(predictions),
        predicted=sum(asked.counted is not None for asked in predictions),
        revealed=sum(asked.measured is not None for asked in predictions),
        as_measured=sum(asked.as_measured is True for asked in predictions),
    )


_COLUMNS = ("lesson", "asked", "predicted", "revealed", "as predicted")


def _cells(lesson: LessonProgress) -> tuple[str, ...]:
    numbers = (lesson.asked, lesson.predicted, lesson.revealed, lesson.as_measured)
    return (lesson.lesson, *map(str, numbers))


def _text(progress: Progress) -> Iterator[str]:
    if progress.trouble:
        yield progress.trouble
    if progress.lessons:
        yield from table([_COLUMNS, *map(_cells, progress.lessons)])
    elif not progress.trouble:
        yield _NOTHING
    yield from (f"{name}: {_graded(lab)}" for name, lab in sorted(progress.labs.items()))
    yield from _inventory_states(progress)
    if record := _scored(progress):
        yield from gain_table(record)
    yield from progress.next


_NOTHING = "No prediction has been asked yet. Open lesson 01 and run its first cells."


def _graded(lab: LabRecord) -> str:
    kind = "points" if lab.hidden else "cells with visible asserts pass"
    return f"{lab.points:g} of {lab.of:g} {kind}"


def _inventory_states(progress: Progress) -> Iterator[str]:
    if progress.inventory is not None:
        yield from (f"Inventory. {state_of(progress.inventory, when)}" for when in WHEN)


def _scored(progress: Progress) -> Record | None:
    """The inventory, where its second pass is handed in: before that nothing is said of what is right."""
    return progress.inventory if progress.inventory and progress.inventory.after.handed_in else None


def _html(progress: Progress) -> Iterator[str]:
    yield '<section class="to-box"><h3>Your progress</h3>'
    if progress.trouble:
        yield f"<p>{escape(progress.trouble)}</p>"
    if progress.next:
        yield "<h4>Next</h4><ul>"
        yield from (f"<li>{escape(step)}</li>" for step in progress.next)
        yield "</ul>"
    if progress.lessons:
        yield from _html_of_lessons(progress)
    elif not progress.trouble:
        yield f"<p>{_NOTHING}</p>"
    if progress.labs:
        yield "<h4>Labs</h4><ul>"
        yield from (f"<li>{escape(name)}: {_graded(lab)}</li>" for name, lab in sorted(progress.labs.items()))
        yield "</ul>"
    if progress.inventory is not None:
        yield "<h4>Inventory</h4>"
        yield from (f"<p>{escape(state_of(progress.inventory, when))}</p>" for when in WHEN)
        if record := _scored(progress):
            yield from gain_html(record)
    for name, group in groupby(progress.predictions, key=_lesson_of):
        yield f"<h4>Lesson {escape(name)}</h4><ul>"
        yield from (f"<li>{escape(asked.id)}: {escape(_sentence(asked))}</li>" for asked in group)
        yield "</ul>"
    yield "</section>"


def _html_of_lessons(progress: Progress) -> Iterator[str]:
    yield "<table><caption>Predictions by lesson</caption><thead><tr>"
    yield '<th scope="col">lesson</th>'
    yield from (f'<th scope="col" class="to-number">{name}</th>' for name in _COLUMNS[1:])
    yield "</tr></thead><tbody>"
    for lesson in progress.lessons:
        name, *numbers = _cells(lesson)
        yield f'<tr><th scope="row">{escape(name)}</th>'
        yield from (f'<td class="to-number">{number}</td>' for number in numbers)
        yield "</tr>"
    yield "</tbody></table>"


def _sentence(asked: ledger.Asked) -> str:
    if asked.counted is None:
        if asked.measured is None:
            return f"{asked.question} Not answered yet."
        return f"{asked.question} Measured {asked.measured}, without a prediction."
    if asked.measured is None:
        return f"{asked.question} You predicted {asked.counted.choice}; the evidence has not run yet."
    verdict = "as predicted" if asked.as_measured else "not as predicted"
    return f"{asked.question} You predicted {asked.counted.choice}; measured {asked.measured}: {verdict}."
