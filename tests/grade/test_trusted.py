"""The visible asserts of one's own notebook."""

import pytest
import tinylab
from typer.testing import CliRunner

from traceonce.cli import app
from traceonce.grade.trusted import check_visible, told

RIGHT = "def double(x):\n    return 2 * x"


def check(tmp_path, **changes):
    path = tinylab.write(tmp_path, "mine", changes)
    (result,) = check_visible([path], lab=None, seconds=20, root=tinylab.COURSE)
    return result


def test_right_answers_pass_and_it_is_said_that_this_is_no_grade(tmp_path):
    result = check(tmp_path)
    assert result.passed
    assert result.cells == {"test_double": "", "test_step": ""}
    *lines, last = told([result])
    assert "2 of 2 cells" in lines[0]
    assert "Hidden ones were not run" in last


@pytest.mark.parametrize(
    ("double", "words"),
    [
        ("def double(x):\n    return x", "an assert failed (line 1 of test_double)"),
        ("def double(x):\n    return y", "NameError: name 'y' is not defined (line 2 of double)"),
        ("import os\n\ndef double(x):\n    os._exit(0)", "the cell ended the Python process"),
    ],
)
def test_a_wrong_answer_says_where(tmp_path, double, words):
    result = check(tmp_path, double=double)
    assert not result.passed
    assert words in result.cells["test_double"]


def test_a_cell_that_never_ends_is_stopped(tmp_path):
    path = tinylab.write(tmp_path, "mine", {"double": RIGHT + "\nwhile True:\n    pass"})
    (result,) = check_visible([path], lab=None, seconds=1, root=tinylab.COURSE)
    assert "took too long" in " ".join(result.problems)


def test_a_notebook_of_no_lab_is_a_sentence(tmp_path):
    (tmp_path / "x.ipynb").write_text("{")
    (result,) = check_visible([tmp_path / "x.ipynb"], lab=None, seconds=5, root=tinylab.COURSE)
    assert not result.passed
    assert result.problems


def test_the_command_needs_a_place_for_records_unless_it_is_trusted(tmp_path):
    path = tinylab.write(tmp_path, "mine", {})
    answer = CliRunner().invoke(app, ["grade", str(path)])
    assert "--out" in str(answer.exception)
