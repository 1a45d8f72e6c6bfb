"""``traceonce grade --trusted``: the visible asserts of one's own notebook, in a plain process.

There is no sandbox, so there are no hidden asserts either: whoever can read one can write for it. Nothing that comes out is
a grade.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceonce.grade.batch import find_notebooks
from traceonce.grade.lab import Lab, find_root, load_lab, read_submission

_GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class VisibleResult:
    """What the visible asserts of one notebook said.

    **Arguments**

    - `problems`: sentences about the notebook as a whole, and about cells that did not run to their end.
    - `cells`: by the `grade_id` of each cell with visible asserts, why it failed; empty where it passed.
    """

    file: Path
    lab: str
    problems: tuple[str, ...]
    cells: dict[str, str]

    @property
    def passed(self) -> bool:
        """Whether there were visible asserts and all of them passed."""
        return bool(self.cells) and not any(self.cells.values())


def check_visible(
    paths: Iterable[Path], *, lab: str | None, seconds: float, root: Path | None = None
) -> list[VisibleResult]:
    """Run the given cells, the solutions and the visible asserts of notebooks, each in a process of its own.

    **Raises**: `UsageError` where there is no notebook or no such lab.
    """
    root = root or find_root()
    fixed = load_lab(lab, root=root) if lab else None
    return [_check(path, fixed, seconds, root) for path, _ in find_notebooks(paths)]


def _check(path: Path, fixed: Lab | None, seconds: float, root: Path) -> VisibleResult:
    read = read_submission(path, fixed, root=root)
    sentences = tuple(found.sentence for found in read.diagnoses)
    if not read.lab or not read.gradable:
        return VisibleResult(path, read.lab or "", sentences or ("It belongs to no lab of this course.",), {})
    lab = fixed or load_lab(read.lab, root=root)
    cells = [cell.as_source() for cell in lab.answered(read.cells, visible=True)]
    problems, found = list(sentences), {}
    for cell, error in zip(cells, _run(cells, seconds), strict=True):
        sentence = _sentence(error)
        if cell["kind"] == "test":
            found[cell["grade_id"]] = sentence
        elif sentence:
            problems.append(f"Cell {cell['grade_id'] or 'without a name'}: {sentence}")
    return VisibleResult(path, lab.name, tuple(problems), found)


def _sentence(error: dict[str, Any] | None) -> str:
    if error is None:
        return ""
    words = error["message"] if error["type_name"] == "AssertionError" else f"{error['type_name']}: {error['message']}"
    place = f" (line {error['line']} of {error['cell']})" if error["line"] else ""
    return f"{words or 'an assert failed'}{place}"


def _run(cells: list[dict[str, str]], seconds: float) -> list[dict[str, Any] | None]:
    """What became of each cell, from a fresh process."""
    command = [sys.executable, "-m", "traceonce.grade.trusted"]
    job = json.dumps({"cells": cells, "seconds": seconds})
    lost = {"type_name": "", "cell": "", "line": 0}
    try:
        done = subprocess.run(
            command, input=job, stdout=subprocess.PIPE, text=True, timeout=seconds + _GRACE_SECONDS, check=False
        )
        lines, why = done.stdout.splitlines(), "the cell ended the Python process"
    except subprocess.TimeoutExpired as error:
        kept = error.stdout or b""
        lines = (kept.decode() if isinstance(kept, bytes) else kept).splitlines()
        why = f"it did not come to an end within {seconds:g} s"
    found: list[dict[str, Any] | None] = [json.loads(line) for line in lines[: len(cells)]]
    if len(found) < len(cells):
        found.append(lost | {"message": why})
    return found + [lost | {"message": "it was not run"}] * (len(cells) - len(found))


def told(results: Iterable[VisibleResult]) -> Iterator[str]:
    """The results as lines for a terminal."""
    for result in results:
        passed = sum(not why for why in result.cells.values())
        yield f"{result.file}: {passed} of {len(result.cells)} cells with visible asserts pass ({result.lab or 'no lab'})"
        yield from (f"    {problem}" for problem in result.problems)
        yield from (f"    {name}: {why or 'passes'}" for name, why in result.cells.items())
    yield "Visible asserts alone, without a sandbox. Hidden ones were not run, so this is no grade."


def main() -> None:
    """Run the cells on standard input; one line of JSON for each: its error, or null."""
    from traceonce.grade.execution import Notebook, Source

    job = json.loads(sys.stdin.read())
    out = sys.stdout
    notebook = Notebook(tuple(Source(**cell) for cell in job["cells"]))
    for source in notebook.sources:
        error, _ = notebook.run_cell(source, job["seconds"])
        form = (
            None if error is None else {name: getattr(error, name) for name in ("type_name", "message", "cell", "line")}
        )
        out.write(json.dumps(form) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
