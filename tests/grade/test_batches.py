import csv
import fcntl
import json
from pathlib import Path

import pytest
import tinylab

from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade import Work, grade_paths, grade_submissions
from traceonce.grade.batch import find_notebooks, name_submission, points_of, student_of
from traceonce.grade.lab import load_lab, read_submission


def grade(paths, out, **options):
    return list(grade_paths(paths, out=out, root=tinylab.COURSE, **options))


def test_reports_stand_beside_each_record(calm, out):
    for name, record in calm.items():
        files = {path.name for path in (out / name).iterdir()}
        assert files == {"record.json", "results.json", "feedback.txt", "feedback.html"}
        assert json.loads((out / name / "results.json").read_text())["score"] == record.score


def test_grades_csv_has_a_row_for_each_submission(calm, out):
    rows = list(csv.DictReader((out / "grades.csv").read_text().splitlines()))
    assert {row["student_id"]: float(row["score"]) for row in rows} == {name: r.score for name, r in calm.items()}


def test_reports_about_all_submissions_are_written(calm, out):
    assert {"grades.csv", "junit.xml", "summary.html"} <= {path.name for path in out.iterdir()}
    cases = (out / "junit.xml").read_text().count("<testcase ")
    assert cases == sum(len(record.asserts) or 1 for record in calm.values())


def test_the_seed_is_made_once_and_is_for_its_owner_alone(calm, out):
    assert (out / "seed").stat().st_mode & 0o777 == 0o600
    assert len((out / "seed").read_text().strip()) == 64


def test_unchanged_work_is_not_done_again_and_changed_work_is(tmp_path):
    place, out = tmp_path / "class", tmp_path / "out"
    for student in ("alice", "bob"):  # the same file name in two folders
        (place / student).mkdir(parents=True)
        tinylab.write(place / student, tinylab.LAB)
    once = grade([place], out)
    kept = (out / f"bob__{tinylab.LAB}" / "record.json").stat().st_mtime_ns
    tinylab.write(place / "alice", tinylab.LAB, {"double": "def double(x):\n    return 3 * x"})
    twice = grade([place], out)
    assert [(record.student, record.score) for record in once] == [("alice", 5), ("bob", 5)]
    assert [(record.student, record.score) for record in twice] == [("alice", 4), ("bob", 5)]
    assert (out / f"bob__{tinylab.LAB}" / "record.json").stat().st_mtime_ns == kept


def test_grading_one_more_keeps_the_others_in_the_reports(tmp_path):
    out = tmp_path / "out"
    for name in ("alice", "bob"):
        grade([tinylab.write(tmp_path, name)], out)
    rows = csv.DictReader((out / "grades.csv").read_text().splitlines())
    assert [row["student_id"] for row in rows] == ["alice", "bob"]
    assert (out / "junit.xml").read_text().count("<testsuite ") == 2


def test_a_lost_seed_is_not_replaced_behind_the_teachers_back(tmp_path):
    out = tmp_path / "out"
    (out / "alice").mkdir(parents=True)
    (out / "alice" / "record.json").write_text("{}")
    with pytest.raises(TraceOnceError, match="the seed that they were made with is gone") as refused:
        grade([tinylab.write(tmp_path, "bob")], out)
    assert refused.value.exit_code == 3


def test_a_learners_environment_is_told_what_grading_needs(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TraceOnceError, match="make env KIND=dev"):
        grade([tinylab.write(tmp_path, "bob")], tmp_path / "out")


def test_what_needs_a_cell_that_is_not_there_could_not_be_checked(tmp_path):
    document = tinylab.notebook({"step": "def step(params, gradient, rate):\n    return double(params)"})
    document["cells"] = [c for c in document["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") != "double"]
    (tmp_path / "alice.ipynb").write_text(json.dumps(document))
    (record,) = grade([tmp_path / "alice.ipynb"], tmp_path / "out")
    steps = [found for found in record.asserts if found.task == "step"]
    assert [found.outcome for found in steps] == ["unchecked", "unchecked"]
    assert all("double" in found.reason for found in steps)


def test_two_graders_do_not_share_a_folder(tmp_path):
    tinylab.write(tmp_path, "one")
    out = tmp_path / "out"
    out.mkdir()
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TraceOnceError, match="Another grader is writing") as refused:
            grade([tmp_path / "one.ipynb"], out)
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"seed_file": Path("/nowhere/seed")}, TraceOnceError, "seed file .* cannot be read"),
        ({"formats": ("pdf",)}, UsageError, "no format 'pdf'"),
        ({"memory_limit": 10}, UsageError, "at least 512 MB"),
        ({"time_limit": 0}, UsageError, "between 1 and"),
        ({"lab": "lab00_none"}, UsageError, "no lab 'lab00_none'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(tmp_path, options, error, words):
    tinylab.write(tmp_path, "one")
    with pytest.raises(error, match=words):
        grade([tmp_path / "one.ipynb"], tmp_path / "out", **options)


def test_a_short_seed_is_refused(tmp_path):
    (tmp_path / "seed").write_text("1234")
    tinylab.write(tmp_path, "one")
    with pytest.raises(TraceOnceError, match="could be guessed"):
        grade([tmp_path / "one.ipynb"], tmp_path / "out", seed_file=tmp_path / "seed")


def test_an_output_folder_that_is_a_file_is_refused(tmp_path):
    tinylab.write(tmp_path, "one")
    (tmp_path / "out").write_text("")
    with pytest.raises(TraceOnceError, match="cannot be written to"):
        grade([tmp_path / "one.ipynb"], tmp_path / "out")


@pytest.mark.parametrize("path", ["nowhere", "empty"])
def test_no_notebook_is_wrong_usage(tmp_path, path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"nothing at|no notebook"):
        list(find_notebooks([tmp_path / path]))


def test_checkpoints_are_no_submissions(tmp_path):
    (tmp_path / ".ipynb_checkpoints").mkdir()
    tinylab.write(tmp_path / ".ipynb_checkpoints", "one-checkpoint")
    tinylab.write(tmp_path, "one")
    assert [str(relative) for _, relative in find_notebooks([tmp_path])] == ["one.ipynb"]


@pytest.mark.parametrize(
    "name", ["x" * 200, "a b", "..", "-rf", "é", "a\nb", "=cmd()", "con:1", "a__b/c", "\udcff"], ids=ascii
)
def test_a_name_becomes_a_safe_folder(name):
    made = name_submission(Path(f"{name}.ipynb"), {})
    assert made.isascii()
    assert made[0].isalnum()
    assert len(made) < 100
    assert not set(made) & set("/\\:\n =")


def test_names_that_would_fall_together_stay_apart():
    taken = {}
    for path in ("a b.ipynb", "a_b.ipynb", "a:b.ipynb", "a__b.ipynb", "a/b.ipynb"):
        taken[name_submission(Path(path), taken)] = True
    assert len(taken) == 5


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("alice/lab90_tiny.ipynb", "alice"),
        ("alice_lab90_tiny.ipynb", "alice"),
        ("lab90_tiny-bob.ipynb", "bob"),
        ("carol.ipynb", "carol"),
        ("lab90_tiny.ipynb", "lab90_tiny"),
    ],
)
def test_the_student_is_read_from_the_path(path, student):
    assert student_of(Path(path), "lab90_tiny") == student


def test_what_a_lab_is_worth_is_read_without_running_it():
    assert points_of(tinylab.COURSE / "tests" / "hidden" / "test_lab90_tiny.py") == 5
    assert points_of(Path("/nowhere")) == 0


# Random inputs --------------------------------------------------------------------------------------------------------

ECHO = "def double(x):\n    raise ValueError(str(x))"


def inputs(tmp_path, seed, **cells):
    """What the hidden asserts gave to `double` in each submission, told by its errors."""
    lab = load_lab(tinylab.LAB, root=tinylab.COURSE)
    works = [
        Work(name, "s", read_submission(tinylab.write(tmp_path, name, {"double": cell}), lab), lab)
        for name, cell in cells.items()
    ]
    return {
        record.submission: [found.reason for found in record.asserts if found.task == "double"]
        for record in grade_submissions(works, seed=seed, root=tinylab.COURSE)
    }


def test_inputs_depend_on_seed_submission_assert_and_cells_and_on_nothing_else(tmp_path):
    first = inputs(tmp_path, b"a" * 32, one=ECHO, two=ECHO)
    again = inputs(tmp_path, b"a" * 32, one=ECHO, two=ECHO + "  # tried again")
    other_seed = inputs(tmp_path, b"b" * 32, one=ECHO)
    assert again["one"] == first["one"]
    assert first["two"] != first["one"]
    assert again["two"] != first["two"]
    assert other_seed["one"] != first["one"]
    assert first["one"][0] != first["one"][1]


# Defects of the grader ------------------------------------------------------------------------------------------------

# A file of hidden asserts that cannot be used, and words for the teacher.
UNUSABLE = {
    "absent": (None, "There are no hidden asserts"),
    "no_python": ("def test_x(lab: pass", "SyntaxError"),
    "no_mark": ("def test_x(lab):\n    pass", "has no @graded"),
    "no_module": ("import nothing_of_this_name", "ModuleNotFoundError"),
    "nothing": ("", "it holds no asserts"),
    "needs_later": (
        "from traceonce.grade.hidden import graded\n\n"
        "@graded(points=1, task='double', title='t', hint='h', needs=('test_b',))\ndef test_a(lab):\n    pass\n\n"
        "@graded(points=1, task='double', title='t', hint='h')\ndef test_b(lab):\n    pass\n",
        "test_a needs test_b, which does not stand before it",
    ),
}


def test_hidden_asserts_that_cannot_be_used_are_no_fault_of_the_student(tmp_path):
    root, place = tmp_path / "course", tmp_path / "class"
    (root / "solutions").mkdir(parents=True)
    (root / "tests" / "hidden").mkdir(parents=True)
    place.mkdir()
    source = tinylab.COURSE / "solutions" / f"{tinylab.LAB}.py"
    for number, (name, (hidden, _)) in enumerate(UNUSABLE.items()):
        lab = f"lab0{number}_{name}"
        (root / "solutions" / f"{lab}.py").write_text(source.read_text())
        if hidden is not None:
            (root / "tests" / "hidden" / f"test_{lab}.py").write_text(hidden)
        document = tinylab.notebook() | {"metadata": {"traceonce": {"lab": lab}}}
        (place / f"{name}.ipynb").write_text(json.dumps(document))
    with pytest.raises(TraceOnceError, match=r"failed on 6 of 6 submissions, first absent") as refused:
        grade_paths([place], out=tmp_path / "out", root=root)
    assert refused.value.exit_code == 3
    for name, (_, words) in UNUSABLE.items():
        record = json.loads((tmp_path / "out" / name / "record.json").read_text())
        assert words in record["defect"]
        assert (record["status"], record["score"]) == ("error", 0)
        assert "not your fault" in (tmp_path / "out" / name / "feedback.txt").read_text()
