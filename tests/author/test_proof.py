"""The proof finds unfair asserts, asserts that prove nothing, and submissions that are not what they say."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from traceonce.author import proof
from traceonce.author.course import Course
from traceonce.author.grading import grade_answers
from traceonce.author.proof import Graded, Outcome, find_faults, prove, render_table, run_all, stale_tables
from traceonce.author.submissions import Answer, answers, as_notebook, write_notebooks
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.lab import load_lab, read_submission

HIDDEN = """\
from traceonce.grade.hidden import graded


@graded(points=1, task="add", title="It adds", hint="Add both numbers, not one of them twice.")
def test_adds(lab):
    a, b = (int(number) for number in lab.rng.choice(1000, 2, replace=False))
    assert lab.call("add", a, b) == a + b


@graded(points=2, task="double", title="It doubles", hint="Twice the number, not its square.")
def test_doubles(lab):
    number = int(lab.rng.integers(3, 1000))
    assert lab.call("double", number) == 2 * number
"""

SUBMISSIONS = {
    "with_sum": "# ---\n# kind: alternative\n# ---\n{add}\ndef add(a, b):\n    return sum([a, b])\n",
    "with_times": "# ---\n# kind: alternative\n# ---\n{double}\ndef double(a):\n    return 2 * a\n",
    "first_twice": (
        "# ---\n# kind: wrong\n# trap: adds the first number twice\n# fails: test_adds\n"
        "# hint: not one of them twice\n# ---\n{add}\ndef add(a, b):\n    return a + a\n"
    ),
    "squares": (
        "# ---\n# kind: wrong\n# trap: squares\n# fails: test_doubles\n"
        "# hint: not its square\n# ---\n{double}\ndef double(a):\n    return a * a\n"
    ),
}
MARKER = '# %% nbgrader={"grade_id": "NAME"}'


@pytest.fixture
def course(built: Path) -> Course:
    """The small course with hidden asserts and submissions."""
    (built / "tests/hidden").mkdir(parents=True)
    (built / "tests/hidden/test_lab01_tiny.py").write_text(HIDDEN, "utf-8")
    for name, text in SUBMISSIONS.items():
        submission(built, name, text)
    return Course(built)


def submission(root: Path, name: str, text: str) -> None:
    path = root / "tests/submissions/lab01_tiny" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    for cell in ("add", "double"):
        text = text.replace(f"{{{cell}}}", MARKER.replace("NAME", cell))
    path.write_text(text, "utf-8")


def adds(passed: bool, hint: str = "Add both numbers, not one of them twice.") -> Outcome:
    return Outcome("test_adds", "It adds", float(passed), 1.0, passed, "" if passed else hint)


def doubles(passed: bool, hint: str = "Twice the number, not its square.") -> Outcome:
    return Outcome("test_doubles", "It doubles", 2.0 * passed, 2.0, passed, "" if passed else hint)


HONEST = {
    "reference": Graded("passed", (adds(True), doubles(True))),
    "with_sum": Graded("passed", (adds(True), doubles(True))),
    "with_times": Graded("passed", (adds(True), doubles(True))),
    "first_twice": Graded("failed", (adds(False), doubles(True))),
    "squares": Graded("failed", (adds(True), doubles(False))),
    "starter": Graded("error", (adds(False), doubles(False))),
}


def grader(**changes: Graded):
    says = HONEST | changes
    return lambda pair, work: [says[answer.name] for answer, _ in work]


def faults(course: Course, seeds: int = 1, **changes: Graded) -> list[str]:
    pair = course.labs[0]
    return [str(finding) for finding in find_faults(pair, run_all(pair, seeds, grader(**changes)))]


def test_honest_graders_are_proven(course):
    assert faults(course, seeds=3) == []


def test_real_grader_is_proven_and_its_table_written(course, capsys):
    assert prove(course, lab="lab01_tiny", seeds=2, as_json=False) == 0
    out = capsys.readouterr().out
    assert "lab01_tiny: proven." in out
    row = {line.split()[0]: line.split()[2:] for line in out.splitlines() if line.endswith(("3", "2", "1", "0"))}
    assert row["reference"] == [".", ".", "3"]
    assert row["first_twice"] == ["x", ".", "2"]
    assert row["squares"] == [".", "x", "1"]
    assert row["starter"] == ["x", "x", "0"]
    assert list(stale_tables(course)) == []
    table = (course.root / "docs/graders/lab01_tiny.md").read_text("utf-8")
    assert "| `test_adds` | 1 | It adds | `first_twice` |" in table
    assert "| `squares` | squares | `test_doubles` | ... not its square ... |" in table


def test_real_grader_finds_a_starter_that_scores(course):
    text = (course.root / "labs/lab01_tiny.ipynb").read_text("utf-8")
    solved = text.replace('"# YOUR CODE HERE\\n",', '"return a + b\\n",').replace(
        '"    # YOUR CODE HERE\\n",', '"    return a + b\\n",'
    )
    assert solved != text
    (course.root / "labs/lab01_tiny.ipynb").write_text(solved, "utf-8")
    assert [str(finding) for finding in proof.starters_that_score(course)] == [
        "lab01_tiny, starter, seed 0: the untouched starter gets 1 points at test_adds."
    ]


def test_hidden_asserts_that_cannot_be_used_are_a_sentence(course):
    (course.root / "tests/hidden/test_lab01_tiny.py").write_text("import nothing_of_this_name\n", "utf-8")
    with pytest.raises(TraceOnceError, match="grader of lab01_tiny failed on"):
        prove(course, lab=None, seeds=1, as_json=False)


def test_inputs_differ_between_seeds_and_not_between_runs(course):
    path = course.root / "tests/hidden/test_lab01_tiny.py"
    path.write_text(HIDDEN.replace("assert lab.call", "assert int(lab.rng.integers(2)) and lab.call"), "utf-8")
    work = [(Answer("reference", "reference"), seed) for seed in range(6)]
    first, second = ([graded.outcomes for graded in grade_answers(course.labs[0], work)] for _ in range(2))
    assert {outcomes[0].passed for outcomes in first} == {True, False}
    assert first == second


def test_right_answer_that_fails(course):
    unfair = Graded("failed", (adds(False), doubles(True)))
    assert faults(course, with_sum=unfair) == [
        "lab01_tiny, with_sum, seed 0: a right answer fails test_adds: Add both numbers, not one of them twice.",
        "lab01_tiny, with_sum, seed 0: a right answer has the status 'failed'.",
    ]


def test_right_answer_that_fails_on_one_seed_of_many(course):
    pair = course.labs[0]

    def flaky(pair, work):
        unlucky = Graded("failed", (adds(False), doubles(True)))
        return [unlucky if (answer.name, seed) == ("reference", 41) else HONEST[answer.name] for answer, seed in work]

    found = [str(finding) for finding in find_faults(pair, run_all(pair, 200, flaky))]
    assert len(found) == 2
    assert all("reference, seed 41" in text for text in found)


def test_trap_that_passes(course):
    assert faults(course, squares=HONEST["reference"]) == [
        "lab01_tiny, squares, seed 0: the trap 'squares' passes test_doubles."
    ]


def test_trap_that_fails_elsewhere_only(course):
    assert faults(course, squares=HONEST["first_twice"]) == [
        "lab01_tiny, squares, seed 0: the trap 'squares' passes test_doubles."
    ]


def test_hint_that_does_not_show(course):
    silent = Graded("failed", (adds(True), doubles(False, hint="Look again.")))
    assert faults(course, squares=silent) == [
        "lab01_tiny, squares, seed 0: the hint 'not its square' does not show; what shows is 'Look again.'."
    ]


def test_starter_that_scores(course):
    assert faults(course, starter=HONEST["squares"]) == [
        "lab01_tiny, starter, seed 0: the untouched starter gets 1 points at test_adds."
    ]


def test_assert_that_nothing_fails(course):
    extra = replace(adds(True), name="test_more")
    always = {name: Graded(said.status, (*said.outcomes, extra)) for name, said in HONEST.items() if name != "starter"}
    assert faults(course, **always) == [
        "tests/hidden/test_lab01_tiny.py: no wrong answer names test_more: write one that it catches, or delete the assert."
    ]


def test_assert_that_is_named_and_not_there(course):
    path = course.root / "tests/submissions/lab01_tiny/squares.py"
    path.write_text(path.read_text("utf-8").replace("fails: test_doubles", "fails: test_doubles, test_gone"), "utf-8")
    assert faults(course) == [
        "lab01_tiny, squares, seed 0: it names the assert 'test_gone', which tests/hidden/test_lab01_tiny.py does not have."
    ]


def test_grader_without_asserts_proves_nothing(course):
    nothing = {name: Graded("failed", ()) for name in HONEST}
    assert any("reports no hidden assert" in text for text in faults(course, **nothing))


def test_one_alternative_is_too_few(course):
    (course.root / "tests/submissions/lab01_tiny/with_sum.py").unlink()
    assert faults(course) == ["tests/submissions/lab01_tiny: 1 alternative right answers, of at least two."]


def test_a_failed_proof_leaves_the_table_alone_and_returns_1(course, capsys):
    assert prove(course, lab=None, seeds=1, as_json=False, grader=grader(squares=HONEST["reference"])) == 1
    assert "lab01_tiny: 1 to mend." in capsys.readouterr().out
    assert not (course.root / "docs/graders").exists()


def test_the_table_is_the_same_on_any_number_of_seeds(course):
    pair = course.labs[0]
    few, many = (render_table(pair, run_all(pair, seeds, grader())) for seeds in (1, 20))
    assert few == many


def test_proof_as_json(course, capsys):
    assert prove(course, lab=None, seeds=1, as_json=True, grader=grader()) == 0
    (lab,) = json.loads(capsys.readouterr().out)
    assert lab["lab"] == "lab01_tiny"
    assert lab["findings"] == []
    assert {run["answer"]["name"] for run in lab["runs"]} == set(HONEST)


def test_unknown_lab(course):
    with pytest.raises(UsageError, match="the labs are lab01_tiny"):
        prove(course, lab="lab09", seeds=1, as_json=False, grader=grader())


def test_answers_become_whole_notebooks(course):
    pair = course.labs[0]
    by_name = {answer.name: answer for answer in answers(pair)}
    assert [answer.kind for answer in by_name.values()] == [
        "reference",
        *["alternative"] * 2,
        *["wrong"] * 2,
        "starter",
    ]
    squares = {
        cell["metadata"].get("nbgrader", {}).get("grade_id"): cell
        for cell in as_notebook(pair, by_name["squares"])["cells"]
    }
    assert squares["double"]["source"] == "def double(a):\n    return a * a"
    assert squares["add"]["source"] == 'def add(a, b):\n    """The sum of two numbers."""\n    return a + b'
    assert as_notebook(pair, Answer("starter", "starter")) == json.loads(
        (course.root / pair.starter).read_text("utf-8")
    )


def test_written_notebooks_are_submissions_of_their_lab(course, tmp_path, capsys):
    assert write_notebooks(course, lab=None, folder=tmp_path / "out") == 0
    assert capsys.readouterr().out == f"6 notebooks written to {tmp_path / 'out'}.\n"
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == sorted(f"lab01_tiny-{name}.ipynb" for name in HONEST)
    lab = load_lab("lab01_tiny", root=course.root)
    for name in names:
        read = read_submission(tmp_path / "out" / name, root=course.root)
        assert (read.lab, read.diagnoses, list(read.cells)) == (lab.name, (), ["add", "double"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{add}\nadd = 1\n", "its header needs 'kind: wrong'"),
        ("# ---\n# kind: good\n# ---\n{add}\nadd = 1\n", "its header needs 'kind: wrong'"),
        ("# ---\n# kind: wrong\n# trap: a\n# fails: test_adds\n# ---\n{add}\nadd = 1\n", "header needs 'hint:'"),
        ("# ---\n# kind: alternative\n# colour: red\n# ---\n{add}\nadd = 1\n", "'colour' means nothing here"),
        ("# ---\n# kind: alternative\n# ---\n", "changes no solution cell"),
        ("# ---\n# kind: alternative\n# ---\n{add}\nadd = 1\n{add}\nadd = 2\n", "is there twice"),
        (f"# ---\n# kind: alternative\n# ---\n{MARKER}\nadd = 1\n", "'NAME' is no solution cell of lab01_tiny"),
        ("# ---\n# kind: alternative\n# ---\n# %%\nadd = 1\n", "None is no solution cell"),
    ],
)
def test_submission_that_is_not_in_the_form(course, text, says):
    submission(course.root, "new", text)
    with pytest.raises(TraceOnceError, match=says):
        answers(course.labs[0])


def test_submission_may_not_take_the_name_of_the_reference(course):
    submission(course.root, "reference", SUBMISSIONS["with_sum"])
    with pytest.raises(TraceOnceError, match="give the file another name"):
        answers(course.labs[0])
