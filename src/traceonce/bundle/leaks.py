"""Searches a bundle for text of solutions and of hidden asserts.

A bundle for learners is made from a list of what goes in, so nothing secret should be in it. This looks at what is in it all the same,
because a solution that was copied into a lesson or into a docstring is on no list.

What is compared are lines of code without their indentation, blank lines and comments aside: a body counts as found where three lines of it
follow each other, or all of a shorter one. A short line is no evidence: `return x` stands everywhere. A lesson teaches what its lab asks for, and
a lab may give the code that is to be repaired, so there a body counts as found where half of it stands in one piece.
"""

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from traceonce.bundle.output import Part
from traceonce.grade.percent import read_percent

_RUN = 3
_FEWEST_CHARACTERS = 60
_FEWEST_OF_ALL = 40
_SHARE_IN_NOTEBOOKS = 0.5
_TAUGHT = frozenset(
    {
        # The lesson registers this class in front of the learner, and the task is to write one in a way of one's own.
        ("course/03_pytrees/03_pytrees.ipynb", "solutions/lab03_pytrees.py, solution of affine"),
        # The lesson builds a thread that reads ahead, fault by fault, and the lab asks for one that keeps all of its promises.
        (
            "course/10_feeding_the_device/10_feeding_the_device.ipynb",
            "solutions/lab10_feeding_the_device.py, solution of prefetch",
        ),
    }
)
"""Solutions that a lesson shows on purpose: the file of the bundle, and the solution."""

_SOLUTION = re.compile(r"^[ \t]*### BEGIN SOLUTION$(?P<body>.*?)^[ \t]*### END SOLUTION$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Secret:
    """A body that must be in no bundle: where it stands, and its lines of code."""

    where: str
    lines: tuple[str, ...]

    def runs(self, *, share: float = 0.0) -> Iterator[str]:
        """The pieces that are looked for: so many lines that follow each other, at least this share of all."""
        width = min(max(_RUN, math.ceil(share * len(self.lines))), len(self.lines))
        for start in range(len(self.lines) - width + 1):
            run = "\n".join(self.lines[start : start + width])
            if len(run) >= (_FEWEST_CHARACTERS if len(self.lines) > width else _FEWEST_OF_ALL):
                yield run


def secrets_in(root: Path) -> list[Secret]:
    """The solutions and the hidden asserts of a course."""
    found = []
    for path in sorted((root / "solutions").glob("*.py")):
        for cell in read_percent(path.read_text("utf-8"), path.name):
            name = cell.metadata.get("nbgrader", {}).get("grade_id", f"line {cell.line}")
            for match in _SOLUTION.finditer(cell.source):
                found.append(Secret(f"{path.relative_to(root)}, solution of {name}", code_lines(match["body"])))
    for path in sorted((root / "tests" / "hidden").glob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                body = "\n".join(text.splitlines()[node.body[0].lineno - 1 : node.end_lineno])
                found.append(Secret(f"{path.relative_to(root)}, {node.name}", code_lines(body)))
    return found


def code_lines(text: str) -> tuple[str, ...]:
    """Lines of code as they are compared."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def find_leaks(parts: Mapping[str, Part], secrets: list[Secret]) -> Iterator[tuple[str, str]]:
    """Each place in a bundle that holds text of a secret, with what it holds."""
    everywhere = [(secret.where, f"\n{run}\n") for secret in secrets for run in secret.runs()]
    in_notebooks = [
        (secret.where, f"\n{run}\n") for secret in secrets for run in secret.runs(share=_SHARE_IN_NOTEBOOKS)
    ]
    for name, part in sorted(parts.items()):
        text = "\n" + "\n".join(code_lines(_text(name, part))) + "\n"
        runs = in_notebooks if name.startswith(("course/", "labs/")) else everywhere
        found = dict.fromkeys(where for where, run in runs if run in text)
        yield from ((name, where) for where in found if (name, where) not in _TAUGHT)


def _text(name: str, part: Part) -> str:
    """A file's text; of a notebook what its cells hold and printed."""
    text = part.content.decode("utf-8", "replace")
    if not name.endswith(".ipynb"):
        return text
    pieces: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            pieces.append(value)
        elif isinstance(value, list):
            if value and all(isinstance(inner, str) for inner in value):
                pieces.append("".join(value))  # a text that is stored in lines
            else:
                for inner in value:
                    collect(inner)
        elif isinstance(value, dict):
            for inner in value.values():
                collect(inner)

    collect(json.loads(text))
    return "\n".join(pieces)
