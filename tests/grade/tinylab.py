"""Notebooks of the tests' own lab, with some cells changed."""

import json
from pathlib import Path
from typing import Any

from traceonce.grade.lab import Lab, load_lab

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
