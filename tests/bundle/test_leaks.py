import json

import pytest

from traceonce.bundle.leaks import Secret, code_lines, find_leaks, secrets_in
from traceonce.bundle.output import Part
from traceonce.grade.lab import find_root

BODY = (
    "given = problem(lab, rows=7, features=3)",
    "seen = lab.observe('mse', given.x)",
    "assert close(seen.value, 1.0)",
)


@pytest.fixture
def course(tmp_path):
    """A course of one lab with one hidden assert."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "tests" / "hidden").mkdir(parents=True)
    (tmp_path / "solutions" / "lab90_x.py").write_text(
        "# %%\ndef f(rows, weights):\n    ### BEGIN SOLUTION\n    # a comment\n    gathered = rows @ weights\n\n"
        "    total = gathered.sum(axis=0)\n    return total / gathered.shape[0]\n    ### END SOLUTION\n"
        "# %%\ndef g(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION\n"
    )
    (tmp_path / "tests" / "hidden" / "test_lab90_x.py").write_text(
        "@graded(points=1)\ndef test_a(lab):\n" + "".join(f"    {line}\n" for line in BODY)
    )
    return tmp_path


def _leaks(course, text, name="a.py"):
    return list(find_leaks({name: Part.text(text)}, secrets_in(course)))


def test_secrets_are_the_code_of_solutions_and_of_hidden_functions(course):
    solution, short, hidden = secrets_in(course)
    assert solution.lines == (
        "gathered = rows @ weights",
        "total = gathered.sum(axis=0)",
        "return total / gathered.shape[0]",
    )
    assert hidden == Secret("tests/hidden/test_lab90_x.py, test_a", BODY)
    assert list(short.runs()) == []  # too short to be evidence


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(BODY),
        "def other():\n" + "".join(f"        {line}  \n\n        # why\n" for line in BODY) + "    more()",
        "".join(f"{line}\r\n" for line in BODY),
    ],
)
def test_a_body_is_found_whatever_its_indentation_and_comments(course, text):
    assert _leaks(course, text) == [("a.py", "tests/hidden/test_lab90_x.py, test_a")]


@pytest.mark.parametrize("as_lines", [True, False])
@pytest.mark.parametrize("key", ["source", "text"])
def test_a_body_is_found_in_cells_and_in_outputs_of_a_notebook(course, as_lines, key):
    text = "\n".join(BODY)
    held = text.splitlines(keepends=True) if as_lines else text
    cell = {"source": ["x"], "outputs": [{"text": ["y"]}]}
    target = cell if key == "source" else cell["outputs"][0]
    target[key] = held
    assert _leaks(course, json.dumps({"cells": [cell]}), "a.ipynb") == [
        ("a.ipynb", "tests/hidden/test_lab90_x.py, test_a")
    ]


def test_other_code_is_no_leak(course):
    assert _leaks(course, "\n".join(BODY[:2]) + "\nother()\n" + BODY[2] + "\nreturn 2 * x\n") == []


def test_a_lesson_or_a_lab_may_show_a_piece_and_not_half(course):
    lines = [f"value_{number} = rows[{number}] @ weights" for number in range(8)]
    hidden = course / "tests" / "hidden" / "test_lab90_x.py"
    hidden.write_text("def test_a(lab):\n" + "".join(f"    {line}\n" for line in lines))
    for shown, places in ((3, ["src/a.py"]), (4, ["course/a.py", "labs/a.py", "src/a.py"])):
        part = Part.text("\n".join(lines[:shown]))
        found = find_leaks(dict.fromkeys(("course/a.py", "labs/a.py", "src/a.py"), part), secrets_in(course))
        assert [name for name, _ in found] == places


def test_nothing_of_the_course_is_too_short_to_be_looked_for_but_a_few_lines():
    """The search would be blind if most bodies were left out."""
    secrets = secrets_in(find_root())
    unseen = [secret for secret in secrets if not list(secret.runs())]
    assert len(secrets) > 100
    assert len(unseen) < len(secrets) / 10
    assert all(len("\n".join(secret.lines)) < 60 for secret in unseen)


def test_lines_of_code():
    assert code_lines("  a = 1  \n\n# no\n\tb # yes\n") == ("a = 1", "b # yes")
