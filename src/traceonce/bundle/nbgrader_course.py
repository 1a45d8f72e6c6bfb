"""A course folder for nbgrader, of labs whose points come from hidden asserts.

::

    OUT/
      nbgrader_config.py              has nbgrader grade through traceonce
      README.md                       the four commands, for the teacher
      source/LAB/LAB.ipynb            what `nbgrader generate_assignment LAB` makes the release from
      traceonce/                      never released: reference, hidden asserts, seed, and later the records
"""

import re
from pathlib import Path
from typing import Any

from traceonce.author.course import Pair
from traceonce.author.notebooks import Json, assemble, dumps
from traceonce.bundle import grader_part
from traceonce.bundle.output import Part, write_folder
from traceonce.errors import TraceOnceError
from traceonce.grade.lab import find_root
from traceonce.sandbox.handle import NAMESPACES, refuse_unknown_tier

PRIVATE = "traceonce"
HIDDEN = "hidden_"
"""What the `grade_id` of a cell starts with that brings a task's points; the task's own `grade_id` follows."""

# A relative link leads nowhere from a folder that holds one lab alone.
_RELATIVE_LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]+)\]\((?!\w+:|#)[^)\s]*\)")

_CONFIG = '''"""Settings of this nbgrader course. Keep the line that chooses the preprocessors: it is what grades the labs."""

from pathlib import Path

from traceonce.bundle.nbgrader_grading import autograde_preprocessors

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "traceonce"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# Student code runs in a sandbox of traceonce and never in this process or in a kernel of nbgrader's.
c.Autograde.autograde_preprocessors = autograde_preprocessors()
c.GradeInSandbox.folder = str(Path(__file__).resolve().parent / "traceonce")
c.GradeInSandbox.time_limit = 60.0  # seconds for a notebook
c.GradeInSandbox.memory_limit = 2048  # MB for a notebook
c.GradeInSandbox.isolation = "{isolation}"
'''

_README = """# Labs of Trace Once, for nbgrader

Labs: {labs}.

In the environment that has `traceonce[grade]` and `nbgrader` (0.9.5 or newer), in this folder:

```
nbgrader generate_assignment {first}     # release/{first}/{first}.ipynb: what students get
nbgrader collect {first}                 # or lay notebooks at submitted/STUDENT/{first}/{first}.ipynb
nbgrader autograde {first}               # grades each in a sandbox; points arrive in the gradebook
nbgrader generate_feedback {first}
nbgrader export
```

Students need the course's environment (`make learn` in the archive that `traceonce bundle students` makes).

`traceonce/` holds reference solutions, hidden asserts and the seed of the random inputs. It is not under `source/`, so nbgrader never releases it:
keep it from students, and keep the seed as long as grades can be disputed. After grading, `traceonce/records/` has a page of feedback and
a full record for each submission.

Where the sandbox cannot be built, `nbgrader autograde` fails with a sentence and no score is stored: nothing weaker is taken in its place.
`nbgrader_config.py` names the isolation and the limits.
"""


def bundle_nbgrader(
    *,
    labs: list[str],
    out: Path,
    seed_file: Path | None = None,
    isolation: str = NAMESPACES,
    force: bool = False,
    root: Path | None = None,
) -> list[str]:
    """Make or, with `force`, bring up to date a course folder; returns the labs in it.

    With `force` the seed, the gradebook and what students handed in stay as they are.

    **Raises**: `UsageError` for an unknown lab or a folder that is there; `TraceOnceError` where it cannot be made.
    """
    root = root or find_root()
    refuse_unknown_tier(isolation)
    chosen = grader_part.chosen_labs(labs, root)
    parts: dict[str, Part] = {f"{PRIVATE}/{grader_part.SEED}": grader_part.new_seed(seed_file)}
    for lab in chosen:
        for name, part in grader_part.files_of(lab, root).items():
            parts[f"{PRIVATE}/{name}"] = part
        parts[f"source/{lab}/{lab}.ipynb"] = Part.text(dumps(source_notebook(lab, root)))
    parts["nbgrader_config.py"] = Part.text(_CONFIG.format(isolation=isolation))
    parts["README.md"] = Part.text(_README.format(labs=", ".join(chosen), first=chosen[0]))
    keep = frozenset() if seed_file else frozenset({f"{PRIVATE}/{grader_part.SEED}"})
    write_folder(out, parts, force=force, keep=keep)
    (out / PRIVATE).chmod(0o700)
    return chosen


def source_notebook(lab: str, root: Path) -> Json:
    """A lab as nbgrader's instructor version: visible asserts give no points, and each task ends with a cell that does."""
    notebook = assemble(Pair(root, Path("solutions") / f"{lab}.py", "lab"), None)
    points = grader_part.points_by_task(lab, root)
    cells: list[Json] = []
    waiting: list[str] = []
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader")
        # The points of a task stand after its visible asserts: before the next text, or the next answer.
        if waiting and (cell["cell_type"] != "code" or (about and about["solution"])):
            cells += [_points_cell(task, points[task]) for task in waiting]
            waiting = []
        if cell["cell_type"] == "markdown":
            cell["source"] = _RELATIVE_LINK.sub(lambda match: match["words"], cell["source"])
        elif about and about["grade"]:
            del about["points"]
            about |= {"grade": False, "locked": True}
        elif about and about["solution"] and about["grade_id"] in points:
            waiting.append(about["grade_id"])
        cells.append(cell)
    cells += [_points_cell(task, points[task]) for task in waiting]
    placed = {cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if is_points_cell(cell)}
    if lost := [task for task in points if HIDDEN + task not in placed]:
        raise TraceOnceError(f"The hidden asserts of {lab} name a task {lost[0]!r}, which is no solution cell of it.")
    return notebook | {"cells": cells}


def is_points_cell(cell: Any) -> bool:
    """Whether a cell brings the points of a task."""
    return str(cell["metadata"].get("nbgrader", {}).get("grade_id", "")).startswith(HIDDEN)


def _points_cell(task: str, points: float) -> Json:
    words = "1 point" if points == 1 else f"{points:g} points"
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"{HIDDEN}{task}"[:64],
        "metadata": {"nbgrader": points_metadata(task, points)},
        "outputs": [],
        # What stands between the marks is not released. It runs only where the settings of this course are not in use, and
        # then it gives no points, because it would run in one process with student code.
        "source": f"# {task}, {words}: hidden asserts, run when your teacher grades. There is nothing to do here.\n"
        "### BEGIN HIDDEN TESTS\n"
        'raise RuntimeError("Not graded: run nbgrader autograde with the nbgrader_config.py that traceonce made.")\n'
        "### END HIDDEN TESTS",
    }


def points_metadata(task: str, points: float) -> Json:
    """nbgrader's metadata of a cell that brings points."""
    return {
        "grade": True,
        "grade_id": HIDDEN + task,
        "locked": True,
        "points": points,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
