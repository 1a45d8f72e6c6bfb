"""A learner's answers without the learner, and a class's answers together.

An export holds the random id of the record, question ids, choices, and whether they came before the course or after it. No
name, no path, no machine, no time.
"""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from traceonce.errors import TraceOnceError, UsageError
from traceonce.inventory.questions import Question, answers, edition, questions
from traceonce.inventory.record import WHEN, Record, Sitting
from traceonce.inventory.scores import Gain, gains

FORMAT = "traceonce-inventory"
VERSION = 1
_LARGEST = 100_000  # bytes; an export has about three thousand


def export(record: Record | None, path: Path) -> int:
    """Write a record's answers to a file of their own, whole or not at all; returns how many they are.

    **Raises**: `TraceOnceError` where there is no answer or the file cannot be written; `UsageError` where another kind of file
    is there.
    """
    asked = questions()
    given = {question.id: entry for question in asked if (entry := _answers(record, question))} if record else {}
    if record is None or not given:
        raise TraceOnceError("There is nothing to export: no question of the inventory has been answered.", exit_code=1)
    if path.exists() and _read(path) is None:
        raise UsageError(f"{path} is there and is no export of the inventory: name another file.")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "id": record.id,
        "edition": edition(asked),
        "answers": given,
    }
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        os.replace(name, path)
    except OSError as error:
        raise TraceOnceError(f"{path} cannot be written ({error.strerror}): name another file.") from error
    return sum(len(entry) for entry in given.values())


def _answers(record: Record, question: Question) -> dict[str, str]:
    """The answers to a question that are among its choices."""
    both = {"before": record.before.answers.get(question.id), "after": record.after.answers.get(question.id)}
    return {when: choice for when, choice in both.items() if choice is not None and choice in question.texts}


@dataclass(frozen=True)
class Belief:
    """How many of a class chose a wrong answer. `before` and `after` count learners."""

    question: str
    misconception: str
    before: int
    after: int


@dataclass(frozen=True)
class ClassSummary:
    """What the exports in a folder say together.

    **Arguments**

    - `learners`: how many exports count; `both`: of how many there are answers from both times.
    - `answered`: lesson -> answers and right answers before, answers and right answers after.
    - `gains`: for each lesson and for all, over the questions that a learner answered both times.
    - `beliefs`: each misconception that somebody chose, those first that most still hold.
    - `notes`: sentences about files that do not count, or count in part.
    """

    learners: int
    both: int
    answered: Mapping[str, tuple[int, int, int, int]]
    gains: tuple[Gain, ...]
    beliefs: tuple[Belief, ...]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As plain lists and dictionaries."""
        return asdict(self) | {"gains": [asdict(gain) | {"normalised": gain.normalised} for gain in self.gains]}

    def __str__(self) -> str:
        return "\n".join(_text(self))


def summarise(folder: Path) -> ClassSummary:
    """The exports in a folder (its ``.json`` files), together.

    **Raises**: `UsageError` where there is no such folder or no export in it.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.")
    asked, right = questions(), answers()
    records: dict[str, Record] = {}
    notes = []
    for path in sorted(folder.glob("*.json")):
        document = _read(path)
        if document is None:
            notes.append(f"{path.name} is no export of the inventory and does not count.")
            continue
        record = _record(document)
        if document.get("edition") != edition(asked):
            notes.append(f"{path.name} was made with other questions; what both know counts.")
        earlier = records.get(record.id)
        if earlier:
            notes.append(f"{path.name} is of a learner who is there already; the fuller one of the two counts.")
        records[record.id] = max((record, earlier or record), key=_size)
    if not records:
        raise UsageError(f"{folder} holds no export of the inventory: ask for files of 'traceonce progress --export'.")
    kept = [record for record in records.values() if _size(record)]
    return ClassSummary(
        learners=len(records),
        both=sum(bool(record.before.answers and record.after.answers) for record in kept),
        answered=_answered(kept, asked, right),
        gains=gains(kept, asked, right),
        beliefs=tuple(_beliefs(kept, asked)),
        notes=tuple(notes),
    )


def _size(record: Record) -> int:
    return len(record.before.answers) + len(record.after.answers)


def _read(path: Path) -> dict[str, Any] | None:
    """The document in a file; None where it is no export."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        document = json.loads(content) if len(content) <= _LARGEST else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        return None
    given = document.get("answers")
    if not isinstance(document.get("id"), str) or not isinstance(given, dict):
        return None
    return document if all(isinstance(entry, dict) for entry in given.values()) else None


def _record(document: Mapping[str, Any]) -> Record:
    """What an export says of the questions that are known here."""
    given = document["answers"]
    before, after = (
        Sitting({q.id: given[q.id][when] for q in questions() if given.get(q.id, {}).get(when) in q.texts})
        for when in WHEN
    )
    return Record(document["id"], before, after)


def _answered(
    records: Sequence[Record], asked: Sequence[Question], right: Mapping[str, str]
) -> dict[str, tuple[int, int, int, int]]:
    counts: dict[str, list[int]] = {}
    for question in asked:
        row = counts.setdefault(question.lesson, [0, 0, 0, 0])
        for record in records:
            for place, sitting in ((0, record.before), (2, record.after)):
                choice = sitting.answers.get(question.id)
                row[place] += choice is not None
                row[place + 1] += choice == right[question.id]
    return {lesson: (row[0], row[1], row[2], row[3]) for lesson, row in counts.items()}


def _beliefs(records: Sequence[Record], asked: Sequence[Question]) -> Iterator[Belief]:
    found = []
    for question in asked:
        before, after = (Counter(record.sitting(when).answers.get(question.id) for record in records) for when in WHEN)
        for choice in question.choices:
            if choice.misconception and before[choice.text] + after[choice.text]:
                found.append(Belief(question.id, choice.misconception, before[choice.text], after[choice.text]))
    yield from sorted(found, key=lambda belief: (-belief.after, -belief.before, belief.question))


def _text(summary: ClassSummary) -> Iterator[str]:
    yield f"{summary.learners} learners, {summary.both} of them with answers from before and after."
    yield ""
    rows = [("lesson", "right before", "right after", "gain")]
    for gain in summary.gains[:-1]:
        n_before, before, n_after, after = summary.answered[gain.lesson]
        rows.append((gain.lesson, _share(before, n_before), _share(after, n_after), gain_text(gain)))
    totals = [sum(column) for column in zip(*summary.answered.values(), strict=True)]
    rows.append(("all", _share(totals[1], totals[0]), _share(totals[3], totals[2]), gain_text(summary.gains[-1])))
    yield from table(rows)
    yield "gain: of what those who answered both times could still learn, the share that they learned."
    if summary.beliefs:
        yield ""
        yield from table(
            [
                ("before", "after", "what they believe"),
                *((str(b.before), str(b.after), f"{b.question} {b.misconception}") for b in summary.beliefs),
            ],
            words=2,
        )
    if summary.notes:
        yield ""
        yield from summary.notes


def _share(right: int, number: int) -> str:
    return f"{right} of {number} ({100 * right / number:.0f} %)" if number else "-"


def gain_text(gain: Gain) -> str:
    """`0.50`, or `-` where nothing was left to learn or nothing was answered twice."""
    return "-" if gain.normalised is None else f"{gain.normalised:.2f}"


def table(rows: Sequence[Sequence[str]], *, words: int = 0) -> Iterator[str]:
    """Lines of a table; the column of that number is text and stands on the left, all others on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if number == words else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
