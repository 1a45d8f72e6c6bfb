"""A claim counts where an executed cell shows it, and nowhere else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from traceonce.author.course import Course
from traceonce.author.coverage import coverage, report

REPOSITORY = Path(__file__).resolve().parents[2]
LESSON = "course/01_tiny/01_tiny.py"
NOTEBOOK = "course/01_tiny/01_tiny.ipynb"


def replace(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text("utf-8")
    assert old in text
    (root / name).write_text(text.replace(old, new, 1), "utf-8")


def findings(root: Path) -> list[str]:
    return [str(finding) for finding in coverage(Course(root)).findings]


def test_shown_missing_and_unwritten_claims(built, capsys):
    replace(built, "docs/claims.toml", "[02_later]", 'P2 = "Two."\n[02_later]')
    states = {claim.id: (claim.state, claim.cells) for claim in coverage(Course(built)).claims}
    assert states == {"P1": ("shown", (5,)), "P2": ("missing", ()), "K1": ("not written yet", ())}
    assert report(Course(built), check=False, as_json=False) == 0
    assert report(Course(built), check=True, as_json=False) == 1
    out = capsys.readouterr().out
    assert "01_tiny: 1 of 2 claims shown" in out
    assert "P1   cell 5       One and one make two." in out
    assert "P2   MISSING      Two." in out
    assert "02_later: not written yet, 1 claims" in out


def test_a_course_that_shows_its_claims_passes(built):
    assert findings(built) == []
    assert report(Course(built), check=True, as_json=False) == 0


def test_report_as_json(built, capsys):
    assert report(Course(built), check=True, as_json=True) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["findings"] == []
    assert result["claims"][0] == {
        "lesson": "01_tiny",
        "id": "P1",
        "sentence": "One and one make two.",
        "state": "shown",
        "cells": [5],
        "beside": [],
    }


def test_a_lesson_may_have_a_second_notebook(built):
    replace(built, "docs/claims.toml", "[02_later]", 'P2 = "Two."\n[02_later]')
    folder = built / "course/01_tiny"
    text = (built / LESSON).read_text("utf-8").replace('claims=["P1"]', 'claims=["P2"]')
    (folder / "01b_more.py").write_text(text, "utf-8")
    assert findings(built) == [
        "course/01_tiny/01b_more.ipynb: P2 is not shown: the cell that names it has no stored output; "
        "print the evidence and run 'traceonce author build'."
    ]
    stored = (built / NOTEBOOK).read_text("utf-8").replace('"P1"', '"P2"')
    (folder / "01b_more.ipynb").write_text(stored, "utf-8")
    assert findings(built) == []
    claim = coverage(Course(built)).claims[1]
    assert (claim.id, claim.state, claim.cells, claim.beside) == ("P2", "shown", (), ("01b_more:5",))
    (folder / "01b_more.py").write_text(text.replace('claims=["P2"]', 'claims=["K1"]'), "utf-8")
    assert any("claim K1 is owed by 02_later" in text for text in findings(built))


def drop_outputs(cell: dict) -> None:
    cell["outputs"] = []


def blank_output(cell: dict) -> None:
    cell["outputs"][0]["text"] = ["\n"]


def never_ran(cell: dict) -> None:
    cell["execution_count"] = None


@pytest.mark.parametrize("spoil", [drop_outputs, blank_output, never_ran])
def test_a_cell_without_evidence_shows_nothing(built, spoil):
    notebook = json.loads((built / NOTEBOOK).read_text("utf-8"))
    spoil(notebook["cells"][4])
    (built / NOTEBOOK).write_text(json.dumps(notebook), "utf-8")
    assert findings(built) == [
        f"{NOTEBOOK}: P1 is not shown: the cell that names it has no stored output; "
        "print the evidence and run 'traceonce author build'."
    ]


def test_a_lesson_that_never_ran_is_one_finding(built):
    (built / NOTEBOOK).unlink()
    assert findings(built) == [f"{NOTEBOOK}: no claim of 01_tiny is shown: run 'traceonce author build'."]


def test_an_exception_that_is_meant_is_evidence(built):
    notebook = json.loads((built / NOTEBOOK).read_text("utf-8"))
    error = {"output_type": "error", "ename": "TypeError", "evalue": "v", "traceback": []}
    notebook["cells"][4]["outputs"] = [error]
    (built / NOTEBOOK).write_text(json.dumps(notebook), "utf-8")
    assert findings(built) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        (LESSON, 'claims=["P1"]', 'claims=["P1", "P7"]', "claim 'P7' is not in docs/claims.toml"),
        (LESSON, 'claims=["P1"]', 'claims=["P1", "K1"]', "claim K1 is owed by 02_later"),
        (LESSON, "# %% [markdown]\n# ## Recap", '# %% [markdown] claims=["P1"]\n# ## Recap', "stands on a text cell"),
        ("docs/claims.toml", "[02_later]", '[02_later]\nP1 = "Again."', "P1 stands under 01_tiny and under 02_later"),
        ("docs/claims.toml", "[02_later]", '[02_later]\nk = "No number."', "'k' is not an ID"),
        ("docs/claims.toml", "[01_tiny]", "[01_other]", "the lesson 01_tiny has no claims"),
        ("docs/claims.toml", '"One and one make two."', "2", "write lines like P1"),
        ("docs/claims.toml", "[02_later]", "[02_later", "is not TOML"),
    ],
)
def test_faults_of_the_list_and_of_cells(built, name, old, new, says):
    replace(built, name, old, new)
    assert [text for text in findings(built) if says in text]


# The command line, on this repository ---------------------------------------------------------------------------------


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "traceonce", "author", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, env=dict(os.environ))


def test_every_lesson_of_the_course_has_its_claims_listed():
    result = json.loads(run("claims", "--json").stdout)
    lessons = {claim["lesson"] for claim in result["claims"]}
    assert len(lessons) == 12
    assert {lesson[:2] for lesson in lessons} == {f"{number:02}" for number in range(1, 13)}
    assert not [finding for finding in result["findings"] if finding["where"] == "docs/claims.toml"]


def test_unknown_lab_ends_in_a_sentence_and_exit_code_2():
    result = run("graders", "--lab", "lab99_none")
    assert result.returncode == 2
    assert result.stderr.startswith("traceonce: There is no lab 'lab99_none': the labs are ")


def test_jupytext_and_the_build_let_the_same_metadata_through():
    import tomllib

    from traceonce.author.course import CELL_METADATA

    for folder in ("course", "solutions"):
        settings = tomllib.loads((REPOSITORY / folder / "jupytext.toml").read_text("utf-8"))
        assert settings["cell_metadata_filter"].split(",") == [*CELL_METADATA, "-all"]
        assert settings["formats"] == "ipynb,py:percent"
