"""The right and wrong answers in ``tests/submissions/``, and the whole notebooks that they stand for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from traceonce.author.course import Course, Pair
from traceonce.author.notebooks import Json, assemble, dumps
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.percent import read_header, read_percent

Kind = Literal["reference", "alternative", "wrong", "starter"]


@dataclass(frozen=True)
class Answer:
    """One submission of the proof.

    **Arguments**

    - `name`: the file's name without its ending; `reference` and `starter` have no file.
    - `kind`: what it is, and so what the grader must say of it.
    - `cells`: the solution cells that it changes, by `grade_id`.
    - `trap`: for a wrong one, the mistake in a few words.
    - `fails`: the asserts that must fail.
    - `hint`: a piece of the hint that must show.
    """

    name: str
    kind: Kind
    cells: Mapping[str, str] = field(default_factory=dict)
    trap: str = ""
    fails: tuple[str, ...] = ()
    hint: str = ""


def pick_labs(course: Course, lab: str | None) -> tuple[Pair, ...]:
    """The lab of that name, or all of them. Raises `UsageError` where there is none."""
    found = tuple(pair for pair in course.labs if lab in (None, pair.name))
    if not found:
        names = ", ".join(pair.name for pair in course.labs) or "none yet"
        raise UsageError(f"There is no lab {lab!r}: the labs are {names}." if lab else "There is no lab in solutions/.")
    return found


def folder_of(pair: Pair) -> Path:
    """Where a lab's submissions are, relative to the root."""
    return Path("tests/submissions") / pair.name


def hidden_of(pair: Pair) -> Path:
    """A lab's hidden asserts, relative to the root."""
    return Path("tests/hidden") / f"test_{pair.name}.py"


def answers(pair: Pair) -> tuple[Answer, ...]:
    """The reference, the alternatives, the wrong ones and the starter of a lab, in this order.

    **Raises**: `TraceOnceError` where a file's header or cells are not as they must be.
    """
    read = [_answer(pair, path) for path in sorted((pair.root / folder_of(pair)).glob("*.py"))]
    right = [answer for answer in read if answer.kind == "alternative"]
    wrong = [answer for answer in read if answer.kind == "wrong"]
    return (Answer("reference", "reference"), *right, *wrong, Answer("starter", "starter"))


def _answer(pair: Pair, path: Path) -> Answer:
    name = str(path.relative_to(pair.root))
    text = path.read_text("utf-8")
    header = read_header(text)
    kinds: dict[str, Kind] = {"alternative": "alternative", "wrong": "wrong"}
    kind = kinds.get(header.get("kind", ""))
    if kind is None:
        raise TraceOnceError(f"{name}: its header needs 'kind: wrong' or 'kind: alternative'; see docs/authoring.md.")
    if unknown := header.keys() - {"kind", "trap", "fails", "hint", "about"}:
        raise TraceOnceError(f"{name}: the header's {sorted(unknown)[0]!r} means nothing here; see docs/authoring.md.")
    missing = [key for key in ("trap", "fails", "hint") if kind == "wrong" and not header.get(key)]
    if missing:
        raise TraceOnceError(f"{name}: a wrong answer's header needs '{missing[0]}:'.")
    if path.stem in ("reference", "starter"):
        raise TraceOnceError(f"{name}: the {path.stem} comes from {pair.source}; give the file another name.")
    solutions = {cell.metadata["nbgrader"]["grade_id"] for cell in pair.cells if is_solution(cell.metadata)}
    changed: dict[str, str] = {}
    for cell in read_percent(text, name):
        if cell.cell_type != "code":
            continue
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id not in solutions or grade_id in changed:
            why = "is there twice" if grade_id in changed else f"is no solution cell of {pair.name}"
            raise TraceOnceError(f"{name}, line {cell.line}: the grade_id {grade_id!r} {why}.")
        changed[grade_id] = cell.source
    if not changed:
        raise TraceOnceError(f"{name}: it changes no solution cell, so it is the reference.")
    fails = tuple(part.strip() for part in header.get("fails", "").split(",") if part.strip())
    return Answer(path.stem, kind, changed, header.get("trap", ""), fails, header.get("hint", ""))


def is_solution(metadata: Json) -> bool:
    """Whether a cell's metadata makes it one that the learner fills in."""
    nbgrader = metadata.get("nbgrader", {})
    return bool(nbgrader.get("solution")) and isinstance(nbgrader.get("grade_id"), str)


def as_notebook(pair: Pair, answer: Answer) -> Json:
    """The whole notebook that a learner with this answer would hand in.

    **Raises**: `TraceOnceError` for the starter where ``labs/`` does not have it yet.
    """
    if answer.kind == "starter":
        path = pair.root / pair.starter
        if not path.is_file():
            raise TraceOnceError(f"{pair.starter} is not made yet: run 'traceonce author build'.")
        starter: Json = json.loads(path.read_text("utf-8"))
        return starter
    notebook = assemble(pair, None)
    for cell in notebook["cells"]:
        if is_solution(cell["metadata"]):
            grade_id = cell["metadata"]["nbgrader"]["grade_id"]
            cell["source"] = answer.cells.get(grade_id, _without_markers(cell["source"]))
    return notebook


def _without_markers(source: str) -> str:
    lines = source.split("\n")
    return "\n".join(line for line in lines if "### BEGIN SOLUTION" not in line and "### END SOLUTION" not in line)


def write_notebooks(course: Course, *, lab: str | None, folder: Path) -> int:
    """Write every answer of the lab, or of all labs, as ``<lab>-<answer>.ipynb``. Returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for pair in pick_labs(course, lab):
        for answer in answers(pair):
            notebook = as_notebook(pair, answer)
            (folder / f"{pair.name}-{answer.name}.ipynb").write_text(dumps(notebook), "utf-8")
            count += 1
    print(f"{count} notebooks written to {folder}.")
    return 0
