"""A build gives the same bytes each time, runs what changed, and never loses an edit."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from traceonce.author import building
from traceonce.author.building import build
from traceonce.author.course import Course
from traceonce.author.execution import NotebookFailed, execute
from traceonce.author.notebooks import clean_outputs, dumps
from traceonce.author.starters import make_starter
from traceonce.errors import TraceOnceError

LESSON = Path("course/01_tiny/01_tiny.py")


def notebook(root: Path, name: str | Path) -> dict:
    return json.loads((root / name).with_suffix(".ipynb").read_text("utf-8"))


def edit(root: Path, old: str, new: str, name: str | Path = LESSON) -> None:
    text = (root / name).read_text("utf-8")
    assert text.count(old) >= 1
    (root / name).write_text(text.replace(old, new), "utf-8")


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*.ipynb"))}


@pytest.fixture
def runs(monkeypatch) -> list[str]:
    """The notebooks that a build executes, in order."""
    ran: list[str] = []

    def spy(pair, **options):
        ran.append(pair.name)
        return execute(pair, **options)

    monkeypatch.setattr(building, "execute", spy)
    return ran


def outputs_of(root: Path, source: str) -> list[dict]:
    return next(cell["outputs"] for cell in notebook(root, LESSON)["cells"] if source in "".join(cell["source"]))


def test_a_build_makes_executed_pairs_and_starters(built):
    assert outputs_of(built, "total = 1 + 1") == [{"name": "stdout", "output_type": "stream", "text": ["2\n"]}]
    lesson = notebook(built, LESSON)
    assert [cell["execution_count"] for cell in lesson["cells"] if cell["cell_type"] == "code"] == [1, 2, 3]
    assert notebook(built, "solutions/lab01_tiny")["metadata"]["traceonce"]["lab"] == "lab01_tiny"
    for path in built.rglob("*.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))
        assert path.read_text("utf-8") == nbformat.writes(nbformat.read(path, as_version=4)) + "\n"


def test_a_second_build_runs_and_changes_nothing(built, runs, capsys):
    before = snapshot(built)
    assert len(before) == 3
    assert build(Course(built)) == 0
    assert runs == []
    assert snapshot(built) == before
    assert capsys.readouterr().out.count("up to date") == 3


def test_building_from_nothing_gives_the_same_bytes(built, runs):
    before = snapshot(built)
    for path in before:
        Path(path).unlink()
    assert build(Course(built)) == 0
    assert runs == ["01_tiny", "lab01_tiny"]
    assert snapshot(built) == before


def test_changed_text_keeps_the_outputs_and_runs_nothing(built, runs):
    kept = outputs_of(built, "total = 1 + 1")
    edit(built, "Where does the sum go?", "Where did the sum go?")
    assert build(Course(built)) == 0
    assert runs == []
    assert outputs_of(built, "total = 1 + 1") == kept
    assert "did the sum" in json.dumps(notebook(built, LESSON))


def test_changed_code_is_run_again_and_nothing_else_is(built, runs):
    edit(built, "total = 1 + 1", "total = 1 + 0")
    edit(built, '["1", "2"]', '["1", "2", "3"]')
    assert build(Course(built)) == 0
    assert runs == ["01_tiny"]
    assert outputs_of(built, "total = 1 + 0")[0]["text"] == ["1\n"]


def test_modification_times_decide_nothing(built, runs):
    (built / LESSON).touch()
    before = snapshot(built)
    assert build(Course(built)) == 0
    assert runs == []
    assert snapshot(built) == before


def test_an_edit_of_the_notebook_alone_is_not_lost(built, capsys):
    edit(built, "total = 1 + 1", "total = 1 + 0", LESSON.with_suffix(".ipynb"))
    before = snapshot(built)
    assert build(Course(built)) == 1
    assert "take its change over into 01_tiny.py" in capsys.readouterr().out
    assert snapshot(built) == before


def test_a_cell_that_raises_stops_its_notebook_and_not_the_build(built, capsys):
    edit(built, "total = 1 + 1", "total = 1 + undefined")
    edit(built, "off by one", "off by two", "solutions/lab01_tiny.py")
    before = notebook(built, LESSON)
    assert build(Course(built)) == 1
    out = capsys.readouterr().out
    assert "course/01_tiny/01_tiny.py:19: NameError: name 'undefined' is not defined" in out
    assert notebook(built, LESSON) == before
    assert "off by two" in json.dumps(notebook(built, "labs/lab01_tiny"))


def test_a_cell_that_runs_too_long_is_named(built):
    edit(built, "from traceonce import predict", "while True: pass")  # the first cell: nothing before it takes time
    with pytest.raises(NotebookFailed, match=r"01_tiny\.py:11: the cell ran longer than 1 s"):
        execute(Course(built).pairs[0], seconds=1)


def test_a_dead_kernel_is_a_sentence(built):
    edit(built, "total = 1 + 1", "import os; os._exit(3)")
    with pytest.raises(NotebookFailed, match="the kernel died"):
        execute(Course(built).pairs[0])


def test_the_starter_holds_no_solution_and_no_output(built):
    text = (built / "labs/lab01_tiny.ipynb").read_text("utf-8")
    assert "return a + b" not in text
    assert "SOLUTION" not in text
    cells = {
        cell["metadata"]["nbgrader"]["grade_id"]: cell
        for cell in json.loads(text)["cells"]
        if "nbgrader" in cell["metadata"]
    }
    assert "raise NotImplementedError()" in "".join(cells["add"]["source"])
    assert '"""The sum of two numbers."""' in "".join(cells["add"]["source"])
    assert cells["add"]["metadata"]["deletable"] is False
    assert cells["test_add"]["metadata"]["editable"] is False
    assert len(cells["test_add"]["metadata"]["nbgrader"]["checksum"]) == 32
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells.values())


def test_nbgrader_itself_makes_the_same_starter(built, tmp_path):
    source = tmp_path / "source" / "lab01_tiny"
    source.mkdir(parents=True)
    shutil.copy(built / "solutions/lab01_tiny.ipynb", source)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # for alembic
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "lab01_tiny", "--create"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    released = json.loads((tmp_path / "release/lab01_tiny/lab01_tiny.ipynb").read_text("utf-8"))
    assert released["cells"] == notebook(built, "labs/lab01_tiny")["cells"]


def test_a_lab_that_nbgrader_refuses_is_a_sentence(root):
    edit(root, "    ### END SOLUTION\n\n# %% nbgrader", "\n# %% nbgrader", "solutions/lab01_tiny.py")
    with pytest.raises(
        TraceOnceError, match=r"solutions/lab01_tiny\.py: nbgrader cannot make a lab of it: no end solution"
    ):
        make_starter(Course(root).labs[0])


def test_outputs_lose_what_changes_from_run_to_run():
    widget = {
        "output_type": "display_data",
        "data": {"text/plain": ["a chart"], "application/vnd.jupyter.widget-view+json": {"model_id": "1f"}},
        "metadata": {},
    }
    error = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mfile in a cell", "E: v"]}
    stream = [{"output_type": "stream", "name": "stdout", "text": text} for text in ("a", ["b\n", "c"])]
    result = {"output_type": "execute_result", "data": {"text/plain": "3"}, "metadata": {}, "execution_count": 41}
    assert clean_outputs([*stream, widget, error, result], 2) == [
        {"output_type": "stream", "name": "stdout", "text": "ab\nc"},
        {"output_type": "display_data", "data": {"text/plain": "a chart"}, "metadata": {}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["E: v"]},
        {"output_type": "execute_result", "data": {"text/plain": "3"}, "metadata": {}, "execution_count": 2},
    ]


def test_every_kind_of_output_is_written_as_nbformat_writes_it():
    outputs = [
        {"output_type": "stream", "name": "stderr", "text": "a\nb"},
        {"output_type": "display_data", "data": {"image/svg+xml": "<svg>\n</svg>", "a/x+json": {"k": [1]}}, "metadata": {}},
        {"output_type": "display_data", "data": {"application/json": {"k": "l\nm"}, "text/plain": "é"}, "metadata": {}},
        {"output_type": "error", "ename": "E", "evalue": "v\nw", "traceback": ["E: v"]},
    ]  # fmt: skip
    cell = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "source": "1\n2\n",
        "execution_count": 1,
        "outputs": outputs,
    }
    whole = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    assert dumps(whole) == nbformat.writes(nbformat.from_dict(whole)) + "\n"
