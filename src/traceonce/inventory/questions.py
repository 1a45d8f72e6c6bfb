"""The questions of the concept inventory and their answers, as records."""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = "src/traceonce/inventory/questions.toml"
ANSWERS = "src/traceonce/inventory/answers.json"
"""Places in a checkout; an installed package carries both files."""

DO_NOT_KNOW = "I do not know"
"""Offered with every question: no misconception, and not right."""


@dataclass(frozen=True)
class Choice:
    """One of the answers that a question offers. `misconception` is empty for the one that is true."""

    text: str
    misconception: str = ""


@dataclass(frozen=True)
class Question:
    """One question of the inventory.

    **Arguments**

    - `id`: the lesson and a letter, `"01-a"`; `claim`: the claim of that lesson that it is about.
    - `ask`: the question in words; `code`: what is run.
    - `choices`: in the order in which they are offered.
    """

    id: str
    claim: str
    ask: str
    code: str
    choices: tuple[Choice, ...]

    @property
    def lesson(self) -> str:
        """The number of the lesson, `"01"`."""
        return self.id.partition("-")[0]

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that can be chosen, as text."""
        return (*(choice.text for choice in self.choices), DO_NOT_KNOW)

    def misconception(self, text: str) -> str:
        """What somebody believes who chose this; empty where it is true, unknown, or no belief."""
        return next((choice.misconception for choice in self.choices if choice.text == text), "")

    @property
    def digest(self) -> str:
        """Of what the answer depends on."""
        return hashlib.sha256(json.dumps([self.code, self.texts]).encode()).hexdigest()[:12]


def parse(text: str) -> tuple[Question, ...]:
    """The questions in the text of the source.

    **Raises**: `ValueError` where it is not made of questions, or an id comes twice.
    """
    found = []
    for entry in tomllib.loads(text).get("question", []):
        try:
            choices = tuple(Choice(item["text"], item.get("misconception", "")) for item in entry["choices"])
            found.append(Question(entry["id"], entry["claim"], entry["ask"], entry["code"].strip() + "\n", choices))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"question {entry.get('id', len(found) + 1)!r} has no {error}") from error
    if len({question.id for question in found}) < len(found):
        raise ValueError("two questions have the same id")
    return tuple(found)


@cache
def questions() -> tuple[Question, ...]:
    """The questions that this package carries, in the order of the lessons."""
    return parse(Path(__file__).with_name("questions.toml").read_text("utf-8"))


@cache
def answers() -> Mapping[str, str]:
    """Question id -> the right choice, as the last build computed it."""
    stored = json.loads(Path(__file__).with_name("answers.json").read_text("utf-8"))
    return {name: entry["answer"] for name, entry in stored.items()}


def edition(asked: Sequence[Question]) -> str:
    """Names a set of questions, so that answers to other ones are not mixed with them."""
    return hashlib.sha256("".join(question.digest for question in asked).encode()).hexdigest()[:12]
