"""Notebooks of the tests' own lab, with some cells changed."""

import json
from pathlib import Path
from typing import Any

from traceonce.grade import Work, grade_submissions
from traceonce.grade.lab import Lab, load_lab, read_submission
from traceonce.grade.record import Record
from traceonce.sandbox.limits import Limits

COURSE = Path(__file__).parent / "course"
LAB = "lab90_tiny"


def notebook(changes: dict[str, str] | None = None, lab: Lab | None = None) -> dict[str, Any]:
    """The reference with the source of some cells replaced, as notebook JSON; of another lab than the tests' own with `lab`."""
    lab = lab or load_lab(LAB, root=COURSE)
    unknown = set(changes or {}) - {cell.grade_id for cell in lab.cells}
    assert not unknown, unknown
    cells = []
    for cell in lab.cells:
        roles = {"solution": cell.kind == "solution", "grade": cell.kind == "test"}
        cells.append(
            {
                "cell_type": "markdown" if cell.kind == "markdown" else "code",
                "source": (changes or {}).get(cell.grade_id, cell.source),
                "metadata": {"nbgrader": {"grade_id": cell.grade_id, **roles}} if cell.grade_id else {},
            }
        )
    return {"cells": cells, "metadata": {"traceonce": {"lab": lab.name}}, "nbformat": 4, "nbformat_minor": 5}


def write(folder: Path, name: str, changes: dict[str, str] | None = None) -> Path:
    """A submission on disk."""
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps(notebook(changes)))
    return path


_CELL = '# %% nbgrader={{"grade_id": "{}", "solution": {}, "grade": false, "locked": {}, "schema_version": 3}}\n{}\n\n'


def write_lab(root: Path, name: str, cells: dict[str, str], hidden: str) -> None:
    """Write a lab that is made up for a test, as `grade_lab` takes it, into its course."""
    for folder in ("solutions", "tests/hidden"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    source = f"# ---\n# jupyter:\n#   traceonce:\n#     lab: {name}\n# ---\n\n# %% [markdown]\n# # A lab\n\n"
    source += _CELL.format("setup", "false", "true", "import jax\nimport jax.numpy as jnp\nimport numpy as np")
    for grade_id, text in cells.items():
        source += _CELL.format(grade_id, "true", "false", f"### BEGIN SOLUTION{text}### END SOLUTION")
    (root / "solutions" / f"{name}.py").write_text(source)
    (root / "tests" / "hidden" / f"test_{name}.py").write_text(hidden)


def grade_lab(
    root: Path,
    name: str,
    cells: dict[str, str],
    hidden: str,
    submissions: dict[str, dict[str, str]],
    limits: Limits | None = None,
) -> dict[str, Record]:
    """The records of submissions to a lab that is made up for a test.

    **Arguments**

    - `root`: an empty folder, for its course.
    - `cells`: the reference's solution cells by `grade_id`; a cell with `jax`, `jnp` and `np` stands before them.
    - `hidden`: its hidden asserts.
    - `submissions`: by name, the cells in which each differs from the reference.
    """
    write_lab(root, name, cells, hidden)
    lab = load_lab(name, root=root)
    works = []
    for submission, changes in submissions.items():
        path = root / f"{submission}.ipynb"
        path.write_text(json.dumps(notebook(changes, lab)))
        works.append(Work(submission, submission, read_submission(path, lab, root=root), lab))
    graded = grade_submissions(
        works, seed=b"s" * 32, root=root, workers=2, share_compiled=False, limits=limits or Limits()
    )
    return {record.submission: record for record in graded}
