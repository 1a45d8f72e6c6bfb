"""The course folder, used by the real nbgrader: its commands, its gradebook, its pages of feedback."""

import csv
import json
import os
import subprocess
import sys
from functools import partial

import pytest
import reachable
import tinylab

from traceonce.bundle import grader_part
from traceonce.bundle.nbgrader_course import bundle_nbgrader, source_notebook
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.batch import hidden_file, points_of
from traceonce.grade.lab import find_root, lab_names

LAB = tinylab.LAB
CANARY = "HIDDEN-CANARY-5b1f"
DOUBLE, STEP = 2.0, 3.0  # what the hidden asserts of each task are worth


def nbgrader(course, *arguments, around=list):
    command = around([sys.executable, "-m", "nbgrader", *arguments])
    # nbgrader looks for its `alembic` by name, and the environment need not be activated.
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
    return subprocess.run(
        command, cwd=course, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=300, check=False
    )


def hand_in(course, student, changes, edit=None):
    """Answer the released notebook and lay it where `nbgrader collect` lays it."""
    notebook = json.loads((course / "release" / LAB / f"{LAB}.ipynb").read_text())
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in changes:
            cell["source"] = changes[name]
    if edit:
        edit(notebook["cells"])
    place = course / "submitted" / student / LAB
    place.mkdir(parents=True)
    (place / f"{LAB}.ipynb").write_text(json.dumps(notebook))


REFERENCE = {cell.grade_id: cell.source for cell in tinylab.load_lab(LAB, root=tinylab.COURSE).solutions}
MUTATES = "def step(params, gradient, rate):\n    params['w'] -= rate * gradient\n    return params"
# What wins in nbgrader's own kernel: no cell that runs after this one can fail, and each gives any number of points.
FORGES = """
import IPython
shell = IPython.get_ipython()
if shell is not None:
    shell.run_cell = lambda *a, **k: None
print("everything passed")
def double(x):
    return 3 * x
5.0
"""


def _without(*names):
    def edit(cells):
        cells[:] = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") not in names]

    return edit


def _own_points(cells):
    for cell in cells:
        about = cell["metadata"].get("nbgrader", {})
        if about.get("grade"):
            about["points"] = 50
            cell["source"] = "50.0"
            cell["outputs"] = [
                {"output_type": "execute_result", "data": {"text/plain": "50.0"}, "metadata": {}, "execution_count": 1}
            ]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course that was released, handed in, graded, and given back."""
    out = tmp_path_factory.mktemp("nbgrader") / "course"
    bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE)
    made = nbgrader(out, "generate_assignment", LAB)
    assert made.returncode == 0, made.stderr
    hand_in(out, "reference", REFERENCE)
    hand_in(out, "untouched", {})
    hand_in(out, "mutates", REFERENCE | {"step": MUTATES})
    hand_in(out, "forges", {"double": FORGES})
    hand_in(out, "own_points", {}, _own_points)
    hand_in(out, "no_points_cell", REFERENCE, _without("hidden_double"))
    hand_in(out, "no_answer_cell", REFERENCE, _without("double"))
    hand_in(out, "raises", REFERENCE | {"double": "1 / 0"})
    graded = nbgrader(out, "autograde", LAB)
    assert graded.returncode == 0, graded.stderr
    for step in (("generate_feedback", LAB), ("export",)):
        assert (done := nbgrader(out, *step)).returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def scores(course):
    """Points by student and cell, as they stand in nbgrader's gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        return {
            submission.student.id: {grade.name: grade.auto_score for grade in submission.notebooks[0].grades}
            for submission in gradebook.assignment_submissions(LAB)
        }


def test_the_release_has_no_answer_no_hidden_assert_and_no_seed(course):
    seed = (course / "traceonce" / "seed").read_text().strip()
    files = [path for path in (course / "release").rglob("*") if path.is_file()]
    assert [path.name for path in files] == [f"{LAB}.ipynb"]
    text = files[0].read_text()
    for secret in (CANARY, seed, "RuntimeError", "BEGIN HIDDEN", "2 * x", "Doubles an array"):
        assert secret not in text
    assert "YOUR CODE HERE" in text
    assert "double, 2 points: hidden asserts" in text


def test_what_a_student_must_not_see_is_for_the_owner_alone(course):
    assert (course / "traceonce").stat().st_mode & 0o777 == 0o700
    assert (course / "traceonce" / "seed").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("student", "double", "step"),
    [
        ("reference", DOUBLE, STEP),
        ("untouched", 0.0, 0.0),
        ("mutates", DOUBLE, STEP - 2),
        ("forges", 1.0, 0.0),  # it keeps its shape, so it does compile once
        ("own_points", 0.0, 0.0),
        ("no_points_cell", DOUBLE, STEP),
        ("no_answer_cell", 0.0, STEP),
        ("raises", 0.0, STEP),
    ],
)
def test_points_of_each_task_arrive_in_the_gradebook(scores, student, double, step):
    assert scores[student] == {"hidden_double": double, "hidden_step": step}


def test_the_gradebook_knows_the_most_that_there_is(course):
    with (course / "grades.csv").open() as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert {float(row["max_score"]) for row in rows.values()} == {DOUBLE + STEP}
    assert float(rows["mutates"]["score"]) == DOUBLE + STEP - 2


def _feedback(course, student):
    return (course / "feedback" / student / LAB / f"{LAB}.html").read_text()


def test_nbgrader_feedback_has_titles_hints_and_own_output_and_nothing_hidden(course):
    page = _feedback(course, "mutates")
    assert "[failed] Leaves its arguments alone (0/2)" in page
    assert "Hint: Build a new dict." in page
    assert "everything passed" in _feedback(course, "forges")
    assert "ZeroDivisionError" in _feedback(course, "raises")
    for student in ("mutates", "forges", "raises"):
        for secret in (CANARY, "test_leaves_arguments_alone", "lab.rng", "np.allclose"):
            assert secret not in _feedback(course, student)


def test_records_are_kept_beside_the_hidden_asserts(course):
    kept = course / "traceonce" / "records" / f"mutates__{LAB}"
    record = json.loads((kept / "record.json").read_text())
    assert (record["tier"], record["score"]) == ("namespaces", DOUBLE + STEP - 2)
    assert sorted(path.name for path in kept.iterdir()) == ["feedback.html", "feedback.txt", "record.json"]


def test_the_isolation_that_was_chosen_is_the_one_that_is_used(tmp_path):
    out = tmp_path / "course"
    bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE, isolation="landlock")
    assert nbgrader(out, "generate_assignment", LAB).returncode == 0
    hand_in(out, "alice", REFERENCE)
    around = partial(reachable.command, hold=tmp_path / "hold")
    done = nbgrader(out, "autograde", LAB, around=around)
    assert done.returncode == 0, done.stderr
    record = json.loads((out / "traceonce" / "records" / f"alice__{LAB}" / "record.json").read_text())
    assert (record["tier"], record["score"]) == ("landlock", DOUBLE + STEP)


def test_a_submission_that_cannot_be_graded_gets_no_score(tmp_path):
    out = tmp_path / "course"
    bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE)
    assert nbgrader(out, "generate_assignment", LAB).returncode == 0
    hand_in(out, "alice", REFERENCE)
    (out / "traceonce" / "seed").unlink()
    graded = nbgrader(out, "autograde", LAB)
    assert graded.returncode != 0
    assert "put it back, or make the bundle anew" in graded.stderr
    assert not (out / "autograded" / "alice" / LAB).exists()
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{out}/gradebook.db") as gradebook:
        (submission,) = gradebook.assignment_submissions(LAB)
        assert [grade.auto_score for grade in submission.notebooks[0].grades] == [None, None]


def test_without_the_settings_of_the_bundle_the_reference_gets_nothing(tmp_path):
    out = tmp_path / "course"
    bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE)
    (out / "nbgrader_config.py").write_text("")
    assert nbgrader(out, "generate_assignment", LAB).returncode == 0
    hand_in(out, "alice", REFERENCE)
    assert nbgrader(out, "autograde", LAB).returncode == 0
    assert nbgrader(out, "generate_feedback", LAB).returncode == 0
    assert "run nbgrader autograde with the nbgrader_config.py that traceonce made" in _feedback(out, "alice")
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{out}/gradebook.db") as gradebook:
        (submission,) = gradebook.assignment_submissions(LAB)
        assert submission.score == 0


def test_another_notebook_of_the_same_course_is_graded_as_ever(tmp_path):
    import nbformat

    out = tmp_path / "course"
    bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE)
    about = {"grade_id": "own_test", "grade": True, "solution": False, "locked": True, "points": 3}
    cell = nbformat.v4.new_code_cell("1.5", metadata={"nbgrader": about | {"task": False, "schema_version": 3}})
    own = out / "source" / "own"
    own.mkdir()
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=kernel), own / "own.ipynb")
    assert nbgrader(out, "generate_assignment", "own").returncode == 0
    place = out / "submitted" / "bob" / "own"
    place.mkdir(parents=True)
    (place / "own.ipynb").write_text((out / "release" / "own" / "own.ipynb").read_text())
    done = nbgrader(out, "autograde", "own")
    assert done.returncode == 0, done.stderr
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{out}/gradebook.db") as gradebook:
        (submission,) = gradebook.assignment_submissions("own")
        assert submission.score == 1.5


@pytest.mark.parametrize("lab", [name for name in lab_names() if hidden_file(find_root(), name).is_file()])
def test_each_lab_of_the_course_becomes_a_notebook_with_all_its_points(lab):
    root = find_root()
    points = grader_part.points_by_task(lab, root)
    assert sum(points.values()) == points_of(hidden_file(root, lab)) > 0
    graded = [cell["metadata"].get("nbgrader", {}) for cell in source_notebook(lab, root)["cells"]]
    assert {about["grade_id"]: about["points"] for about in graded if about.get("grade")} == {
        f"hidden_{task}": worth for task, worth in points.items()
    }


def test_force_keeps_the_seed_and_what_is_not_of_the_bundle(tmp_path):
    out = tmp_path / "course"
    bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE)
    seed = (out / "traceonce" / "seed").read_text()
    (out / "gradebook.db").write_text("grades")
    with pytest.raises(UsageError, match="--force"):
        bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE)
    bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE, force=True)
    assert (out / "traceonce" / "seed").read_text() == seed
    assert (out / "gradebook.db").read_text() == "grades"
    chosen = tmp_path / "seed"
    chosen.write_text("a seed that is long enough")
    bundle_nbgrader(labs=[LAB], out=out, root=tinylab.COURSE, force=True, seed_file=chosen)
    assert (out / "traceonce" / "seed").read_text().strip() == chosen.read_text()


def test_wrong_usage_is_told_before_anything_is_made(tmp_path):
    out = tmp_path / "course"
    short = tmp_path / "short"
    short.write_text("1234")
    for words in (
        {"labs": ["lab77_none"]},
        {"labs": [LAB], "seed_file": short},
        {"labs": [LAB], "seed_file": tmp_path / "none"},
        {"labs": [LAB], "isolation": "none"},
    ):
        with pytest.raises(UsageError):
            bundle_nbgrader(out=out, root=tinylab.COURSE, **words)
    assert not out.exists()


def test_a_lab_without_hidden_asserts_is_no_bundle(tmp_path):
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / f"{LAB}.py").write_text((tinylab.COURSE / "solutions" / f"{LAB}.py").read_text())
    with pytest.raises(TraceOnceError, match="has no hidden asserts yet"):
        bundle_nbgrader(labs=[LAB], out=tmp_path / "out", root=tmp_path)
