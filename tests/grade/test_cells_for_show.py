"""A given cell with the tag `for-show` costs a submission nothing, unless it is needed."""

import pytest

from traceonce.grade import execution
from traceonce.grade.execution import Notebook, Source, unused
from traceonce.grade.lab import load_lab

SHOW = Source("show", "given", "state = shown(3)\nprint(state)", for_show=True)
GIVEN = Source("given", "given", "def shown(n):\n    return n")


def answer(text):
    return Source("task", "solution", text)


@pytest.mark.parametrize(
    "text",
    [
        "def step(state):\n    return state + 1",
        "def step():\n    state = 1\n    return state",
        "step = lambda state: state",
        "class Step:\n    def __call__(self, state):\n        return state",
        "text = 'state'",
        "class Step:\n    def state(self):\n        return 1",
        "class Step:\n    state: int",
        "# state",
        "",
    ],
)
def test_a_cell_whose_names_nobody_reads_is_left_out(text):
    assert unused([GIVEN, SHOW, answer(text)]) == {SHOW}


@pytest.mark.parametrize(
    "text",
    [
        "print(state)",
        "def step():\n    return state",
        "def step():\n    def inner():\n        return state\n    return inner()",
        "step = lambda: state",
        "def step():\n    global state\n    state += 1",
        "class Step:\n    first = state",
        "kept = [state for _ in range(2)]",
        "kept = {name: state for name in 'ab'}",
        "def step():\n    return [state for _ in range(2)]",
        "state += 1",
        "state = 1",
        "class Step:\n    state = state",
        "class Step:\n    state: int = state",
        "import sys\nkept = sys.modules['__main__'].state",
        "kept = (lambda: 0).__globals__['state']",
        "import builtins\nkept = builtins.eval('state')",
        "def step(x=state):\n    return x",
        "def step():\n    return globals()['state']",
        "def step(name):\n    return eval(name)",
        "%time state",
        "def step(:",
        "x = '\\0'\n\0",
        "x = " + "(" * 5000,
    ],
    ids=lambda text: text[:40],
)
def test_a_cell_that_may_be_read_is_run(text):
    assert unused([GIVEN, SHOW, answer(text)]) == frozenset()


def test_a_cell_for_show_that_another_one_needs_is_run_for_it():
    second = Source("second", "given", "later = state", for_show=True)
    third = Source("third", "given", "last = 1", for_show=True)
    assert unused([GIVEN, SHOW, second, third, answer("print(later)")]) == {third}
    assert unused([GIVEN, SHOW, second, third, answer("")]) == {SHOW, second, third}


def test_that_a_given_cell_could_read_any_name_is_for_its_author_to_know():
    given = Source("reads", "given", "def look(name):\n    return globals()[name]")
    assert unused([SHOW, given, answer("")]) == {SHOW}


def test_a_cell_that_takes_long_to_parse_is_given_up(monkeypatch):
    monkeypatch.setattr(execution, "_PARSING_SECONDS", 0.05)
    slow = "".join(f"%time x{number}\n" + "y = 1\n" * 4000 for number in range(45))
    assert unused([GIVEN, SHOW, answer(slow)]) == frozenset()


def test_without_a_cell_for_show_nothing_is_parsed(monkeypatch):
    monkeypatch.setattr(execution, "parse_cell", None)
    assert unused([GIVEN, answer("def step(:")]) == frozenset()


def test_only_cells_with_the_tag_are_left_out():
    given = Source("show", "given", SHOW.text)
    assert unused([GIVEN, given, answer("")]) == frozenset()


@pytest.mark.parametrize(("text", "printed"), [("kept = 1", ""), ("kept = state", "3\n")])
def test_what_is_left_out_is_not_run(text, printed):
    cells = Notebook((GIVEN, SHOW, answer(text)))
    ran = [cells.run_cell(source, 5) for source in cells.sources]
    assert [error for error, _ in ran] == [None] * 3
    assert ran[1][1] == printed


def test_the_tag_of_a_lab_counts_in_grading_and_not_for_the_learner(tmp_path):
    script = tmp_path / "lab90_shown.py"
    script.write_text(
        '# %% nbgrader={"grade_id": "given_show"} tags=["for-show"]\nx = 1\n\n'
        '# %% nbgrader={"grade_id": "task", "solution": true} tags=["for-show"]\n### BEGIN SOLUTION\ny = 1\n### END SOLUTION\n'
    )
    lab = load_lab(script)
    assert [cell.for_show for cell in lab.answered({"task": "y = 2"})] == [True, False]
    assert [cell.for_show for cell in lab.answered({"task": "y = 2"}, visible=True)] == [False, False]
