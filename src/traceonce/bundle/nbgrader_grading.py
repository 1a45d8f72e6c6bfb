"""What `nbgrader autograde` calls for the labs of this course, in place of running student code.

nbgrader runs a notebook in a kernel and takes points from what its test cells give. Whatever runs in that kernel can make them give
anything. So here no kernel is started: the notebook is handed to the grader once, which runs it in a sandbox and judges it outside, and
what comes back is written into the cells that bring the points. From there nbgrader does what it always does.
"""

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.converters.autograde import Autograde
from nbgrader.preprocessors import Execute
from traitlets import Enum, Float, Integer, Unicode

from traceonce.bundle import grader_part
from traceonce.bundle.nbgrader_course import HIDDEN, is_points_cell, points_metadata
from traceonce.errors import TraceOnceError
from traceonce.grade import reports
from traceonce.grade.batch import Work, grade_submissions
from traceonce.grade.lab import lab_names, load_lab, read_submission
from traceonce.grade.record import Record, write_atomically
from traceonce.sandbox.handle import NAMESPACES, TIERS
from traceonce.sandbox.limits import Limits

RECORDS = "records"


def autograde_preprocessors() -> list[type]:
    """nbgrader's own list, with the grader where nbgrader would run the notebook."""
    usual = Autograde.class_traits()["autograde_preprocessors"].default()
    return [GradeInSandbox if step is Execute else step for step in usual]


class GradeInSandbox(Execute):  # type: ignore[misc]
    """Grades a lab of this course through `traceonce`; runs any other notebook as nbgrader does."""

    folder = Unicode(
        help="The folder with reference, hidden asserts and seed that `traceonce bundle nbgrader` made."
    ).tag(config=True)
    time_limit = Float(60.0, help="Seconds a notebook may take.").tag(config=True)
    memory_limit = Integer(2048, help="MB of memory a notebook may use.").tag(config=True)
    isolation = Enum(TIERS, NAMESPACES, help="The isolation of student code.").tag(config=True)

    def preprocess(self, nb: Any, resources: Any, *arguments: Any, **words: Any) -> Any:
        """Grade the notebook and write the points into it.

        **Raises**: `TraceOnceError` where it could not be graded; nbgrader then stores no score.
        """
        about = resources["nbgrader"]
        folder = Path(self.folder)
        # The name is the one that the gradebook knows: nothing that a student can choose.
        if about["notebook"] not in lab_names(folder):
            return super().preprocess(nb, resources, *arguments, **words)
        limits = Limits.for_submission(seconds=self.time_limit, memory_mb=self.memory_limit)
        record = grade(
            nb, lab=about["notebook"], student=about["student"], folder=folder, limits=limits, isolation=self.isolation
        )
        if record.defect:
            raise TraceOnceError(f"The grader failed on {record.submission}, so it has no score: {record.defect}")
        write_points(nb, record, grader_part.points_by_task(record.lab, folder))
        self.log.info("Graded in a sandbox (%s): %s of %s points", record.tier, record.score, record.max_score)
        return nb, resources


def grade(notebook: Any, *, lab: str, student: str, folder: Path, limits: Limits, isolation: str) -> Record:
    """Grade a notebook; its record and its page of feedback are left in the folder."""
    known = load_lab(lab, root=folder)
    with tempfile.TemporaryDirectory(prefix="traceonce-") as place:
        path = Path(place) / f"{lab}.ipynb"
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
        read = read_submission(path, known, root=folder)
    name = f"{student}__{lab}"
    work = Work(name, student, read, known)
    # nbgrader brings a class one by one: what the first submission's reference has compiled serves the others.
    (record,) = grade_submissions(
        [work], seed=grader_part.read_seed(folder), limits=limits, root=folder, tier=isolation
    )
    kept = folder / RECORDS / name
    kept.mkdir(parents=True, exist_ok=True)
    write_atomically(kept / "feedback.html", reports.feedback_html(record))
    write_atomically(kept / "feedback.txt", reports.feedback_text(record))
    write_atomically(kept / "record.json", record.to_json(), mode=0o600)
    return record


def write_points(notebook: Any, record: Record, points: dict[str, float]) -> None:
    """Put a record into a notebook: points where nbgrader looks for them, and what the cells printed or raised."""
    by_name = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in notebook.cells if is_points_cell(cell)}
    for task, most in points.items():
        cell = by_name.get(HIDDEN + task)
        if cell is None:  # the student deleted it, and with it would go the points
            cell = nbformat.v4.new_code_cell(  # type: ignore[no-untyped-call]
                f"# {task}: this cell was not in the notebook.", metadata={"nbgrader": points_metadata(task, most)}
            )
            notebook.cells.append(cell)
        earned = sum(found.earned for found in record.asserts if found.task == task)
        cell["execution_count"] = 1
        cell["outputs"] = [
            # To nbgrader anything on stderr, and an error, means no points at all, so this is stdout.
            _printed(reports.task_text(record, task)),
            nbformat.v4.new_output(  # type: ignore[no-untyped-call]
                "execute_result", {"text/plain": f"{earned:.6g}"}, execution_count=1
            ),
        ]
    ran = {about.grade_id: about for about in record.cells if about.kind == "solution"}
    for cell in notebook.cells:
        about = ran.get(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))
        if about is not None and cell["cell_type"] == "code":
            lines = [about.printed.rstrip("\n"), reports.cell_sentence(about) if about.why else ""]
            if text := "\n".join(line for line in lines if line):
                cell["outputs"] = [_printed(text)]


def _printed(text: str) -> Any:
    return nbformat.v4.new_output("stream", name="stdout", text=text.rstrip("\n") + "\n")  # type: ignore[no-untyped-call]
