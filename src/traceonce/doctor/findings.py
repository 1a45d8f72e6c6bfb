"""One line of the doctor: how it stands, what was found, and what to do."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["OK", "WARN", "FAIL"]

LEVELS: tuple[Level, ...] = ("OK", "WARN", "FAIL")
_WIDTH = 110
_SUBJECT = 18


@dataclass(frozen=True)
class Finding:
    """What one look at the machine gave.

    **Arguments**

    - `level`: `OK`; `WARN` works, with something to know; `FAIL` something of the course or the tools will not work.
    - `subject`: what was looked at, in a word or three.
    - `found`: what is there, with the numbers.
    - `advice`: what to do about it. Every `WARN` and `FAIL` has one.
    """

    level: Level
    subject: str
    found: str
    advice: str = ""

    def __post_init__(self) -> None:
        if self.level != "OK" and not self.advice:
            raise ValueError(f"{self.subject}: a {self.level} must say what to do")


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 where something failed, else 0."""
    return int(any(finding.level == "FAIL" for finding in findings))


def as_text(findings: Sequence[Finding]) -> str:
    """Return the findings as lines for a terminal, and a last line that counts them."""
    lines = []
    for finding in findings:
        lines += _wrapped(f"{finding.level:<4}  {finding.subject:<{_SUBJECT}}  ", finding.found)
        if finding.advice:
            lines += _wrapped(" " * (6 + _SUBJECT) + "  do: ", finding.advice)
    counts = [f"{sum(finding.level == level for finding in findings)} {level}" for level in LEVELS]
    return "\n".join([*lines, "", ", ".join(counts)])


def _wrapped(head: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, _WIDTH - len(head), break_long_words=False, break_on_hyphens=False) or [""]
    return [(head if number == 0 else " " * len(head)) + line for number, line in enumerate(lines)]


def as_json(findings: Sequence[Finding]) -> str:
    """Return the findings as JSON: `{"findings": [...], "counts": {"OK": n, ...}, "exit_code": n}`."""
    counts = {level: sum(finding.level == level for finding in findings) for level in LEVELS}
    document = {"findings": [asdict(f) for f in findings], "counts": counts, "exit_code": exit_code(findings)}
    return json.dumps(document, indent=2)
