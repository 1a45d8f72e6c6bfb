"""What one learner answered, before the course and after it. It lies in their progress file, under the name `inventory`."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from traceonce.inventory.questions import Question

SECTION = "inventory"
When = Literal["before", "after"]
WHEN: tuple[When, When] = ("before", "after")


@dataclass(frozen=True)
class Sitting:
    """One pass through the questions: the choice for each question id, and when it was handed in."""

    answers: Mapping[str, str] = field(default_factory=dict)
    handed_in: str | None = None

    def answered(self, asked: Sequence[Question]) -> int:
        """How many of these questions have an answer that they still offer."""
        return sum(self.answers.get(question.id) in question.texts for question in asked)


@dataclass(frozen=True)
class Record:
    """Both passes of one learner.

    **Arguments**

    - `id`: drawn at random with the first answer; says that two exports are of one learner, and nothing else.
    - `unreadable`: what stood in this place and was no record; it is kept.
    """

    id: str
    before: Sitting = Sitting()
    after: Sitting = Sitting()
    unreadable: tuple[Any, ...] = ()

    def sitting(self, when: When) -> Sitting:
        """One of the two passes."""
        return self.before if when == "before" else self.after

    def is_closed(self, when: When) -> bool:
        """Whether the answers of a pass can no longer change: it was handed in, or the second one has begun."""
        return self.sitting(when).handed_in is not None or (when == "before" and bool(self.after.answers))

    def with_answer(self, when: When, question: str, choice: str) -> "Record":
        """This record with one more answer; a closed pass stays as it is."""
        if self.is_closed(when):
            return self
        sitting = self.sitting(when)
        return self._with(when, replace(sitting, answers={**sitting.answers, question: choice}))

    def with_hand_in(self, when: When, at: str) -> "Record":
        """This record with a pass handed in; the first time counts."""
        sitting = self.sitting(when)
        return self if sitting.handed_in else self._with(when, replace(sitting, handed_in=at))

    def _with(self, when: When, sitting: Sitting) -> "Record":
        return replace(self, before=sitting) if when == "before" else replace(self, after=sitting)

    def as_json(self) -> dict[str, Any]:
        """As `decode` reads it."""
        passes = {
            when: {"answers": dict(sitting.answers), "handed_in": sitting.handed_in}
            for when, sitting in (("before", self.before), ("after", self.after))
        }
        return {"id": self.id, **passes} | ({"unreadable": list(self.unreadable)} if self.unreadable else {})


def new_record() -> Record:
    """An empty record with an id of its own."""
    return Record(secrets.token_hex(8))


def decode(section: Any) -> Record:
    """The record in a section of the progress file. `ValueError` where it is none."""
    try:
        before, after = (
            Sitting(
                {str(name): str(choice) for name, choice in section[when]["answers"].items()},
                None if section[when]["handed_in"] is None else str(section[when]["handed_in"]),
            )
            for when in ("before", "after")
        )
        return Record(str(section["id"]), before, after, tuple(section.get("unreadable", ())))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("the answers of the inventory have not the shape of a record") from error
