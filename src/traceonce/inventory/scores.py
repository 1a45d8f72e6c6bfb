"""Scores and gains. The gain is normalised: the share of what could still be learned that was learned.

Source: R. R. Hake, "Interactive-engagement versus traditional methods: A six-thousand-student survey of mechanics test data for
introductory physics courses", American Journal of Physics 66, 64 (1998), doi:10.1119/1.18809.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from traceonce.inventory.questions import Question
from traceonce.inventory.record import Record


@dataclass(frozen=True)
class Gain:
    """Right answers before and after, of the answers to questions that were answered both times.

    **Arguments**

    - `lesson`: its number, or `all`.
    - `pairs`: how many answers were given both times; `before`, `after`: how many of them were right.
    """

    lesson: str
    pairs: int
    before: int
    after: int

    @property
    def normalised(self) -> float | None:
        """(after - before) / (pairs - before); None where nothing was left to learn."""
        return None if self.before == self.pairs else (self.after - self.before) / (self.pairs - self.before)


def gains(records: Iterable[Record], asked: Sequence[Question], right: Mapping[str, str]) -> tuple[Gain, ...]:
    """One gain for each lesson, and a last one for all of them together, over any number of learners."""
    kept = list(records)
    found = []
    for lesson, group in groupby(asked, key=lambda question: question.lesson):
        pairs = [pair for question in group for record in kept if (pair := _pair(record, question, right[question.id]))]
        found.append(Gain(lesson, len(pairs), sum(b for b, _ in pairs), sum(a for _, a in pairs)))
    total = Gain("all", *(sum(getattr(gain, name) for gain in found) for name in ("pairs", "before", "after")))
    return (*found, total)


def _pair(record: Record, question: Question, right: str) -> tuple[bool, bool] | None:
    """Whether the two answers to a question were right; None where it was not answered both times."""
    before, after = (sitting.answers.get(question.id) for sitting in (record.before, record.after))
    if before not in question.texts or after not in question.texts:
        return None
    return before == right, after == right
