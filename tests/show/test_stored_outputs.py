"""A notebook that uses all of `show` compares equal under nbval, strictly, whatever the learner answered."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from traceonce.show import frontend, ledger
from traceonce.show.ledger import Asked

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}

SETUP = """import jax
import jax.numpy as jnp
from traceonce import chart, predict, progress, watch
from traceonce.show import Arm, Bars, Limit, Line, Timeline

@watch
@jax.jit
def step(w, x):
    return w + x.sum()"""
ASK = 'guess = predict("01-P3", "Which value?", ["0.01", "0.1"])'
REVEAL = "measured = 0.01\nguess.reveal(measured)"
BLOCK = """with watch() as seen:
    chart(seen)
    for n in range(300):
        w = step(0.0, jnp.ones(1 + n // 100))
w"""
FUNCTION = "chart(step)\nstep(0.0, jnp.ones(1))"
CLOSED = "chart(seen)"
MEMORY = """memory = chart(Timeline("memory of the child", (Line("RSS"),), Limit("the cap", 500e6)))
for n in range(50):
    memory.append("RSS", n / 10, 1e6 * n)
memory.close("killed by SIGKILL")"""
PLANS = 'chart(Bars("planned bytes", ("arguments", "temporaries"), (Arm("wide", (1e6, 2e7)), Arm("scan", (1e6, 2e6)))))'
CELLS = [SETUP, ASK, REVEAL, "progress()", BLOCK, FUNCTION, CLOSED, MEMORY, PLANS]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The executed notebook, as its file's text."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in CELLS], metadata=KERNEL)
    environment = os.environ | {"TRACEONCE_PROGRESS": str(tmp_path_factory.mktemp("author") / "progress.json")}
    nbclient.NotebookClient(notebook, timeout=120, store_widget_state=False).execute(env=environment)
    return nbformat.writes(notebook)


def nbval(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "lesson.ipynb").write_text(text)
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-cell-timeout=120", "-p", "no:cacheprovider", "-q"]
    return subprocess.run([*command, "lesson.ipynb"], cwd=folder, capture_output=True, text=True)


def answer(progress_file: Path, choice: str) -> None:
    asked = Asked("01-P3", "Which value?", ("0.01", "0.1"), "t").with_answer(choice, "t")
    assert ledger.update(progress_file, asked.id, lambda _: asked) is None


@pytest.mark.parametrize(("choice", "views"), [("0.01", True), ("0.1", False)])
def test_outputs_compare_with_each_answer_and_with_the_widget_views_taken_out(
    stored: str, choice: str, views: bool, progress_file: Path, tmp_path: Path
) -> None:
    notebook = nbformat.reads(stored, as_version=4)
    for output in [output for cell in notebook.cells for output in cell.outputs if not views]:
        output.get("data", {}).pop(frontend.WIDGET_VIEW, None)
    answer(progress_file, choice)
    done = nbval(nbformat.writes(notebook), tmp_path)
    assert done.returncode == 0, done.stdout
    assert f"{len(CELLS)} passed" in done.stdout
    asked = ledger.read(progress_file).predictions["01-P3"]
    assert (asked.counted.choice, asked.measured) == (choice, "0.01")


def test_another_measured_value_or_number_of_compiles_does_not_compare(stored: str, tmp_path: Path) -> None:
    notebook = nbformat.reads(stored, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("measured = 0.01", "measured = 0.1").replace("n // 100", "n // 150")
    done = nbval(nbformat.writes(notebook), tmp_path)
    failed = [CELLS[int(number)] for number in re.findall(r"^FAILED .*::Cell (\d+)", done.stdout, re.MULTILINE)]
    assert failed == [REVEAL, BLOCK, FUNCTION, CLOSED], done.stdout


def test_the_stored_notebook_is_small_and_reads_without_a_kernel(stored: str) -> None:
    assert len(stored) < 15_000
    cells = dict(zip(CELLS, nbformat.reads(stored, as_version=4).cells, strict=True))
    text = {
        source: [output.get("text") or output.data["text/plain"] for output in cells[source].outputs]
        for source in CELLS
    }
    assert text[ASK] == ["Prediction 01-P3: Which value?\n  ( ) 0.01\n  ( ) 0.1"]
    assert text[REVEAL] == ["01-P3 measured: 0.01\n", ""]
    assert text["progress()"] == [
        "Your progress is shown here while the notebook runs; print(progress()) gives it as text."
    ]
    running = "Chart: calls, traces and compiles by function, drawn while the cell runs."
    assert text[BLOCK] == [running, "Array(3., dtype=float32)", "step: 300 calls, 3 traces, 3 compiles"]
    assert text[FUNCTION][0::2] == [running, "step: 301 calls, 3 traces, 3 compiles"]
    assert text[CLOSED] == ["step: 300 calls, 3 traces, 3 compiles"]
    assert text[MEMORY] == ["Chart over time: memory of the child (RSS) against the cap."]
    assert text[PLANS] == ["Bar chart: planned bytes of wide, scan (arguments, temporaries)."]
    assert cells[BLOCK].outputs[-1].data["image/svg+xml"].startswith("<svg")
