"""Notebooks that use `show` compare equal under nbval, strictly, whatever the learner answered."""

import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from traceonce.show import ledger
from traceonce.show.ledger import Asked

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}

LESSON = [
    "from traceonce import predict, progress",
    'guess = predict("01-P3", "Which value?", ["0.01", "0.1"])',
    "measured = 0.01\nguess.reveal(measured)",
    "progress()",
]


def executed(sources: list[str], folder: Path) -> Path:
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources], metadata=KERNEL)
    nbclient.NotebookClient(notebook, timeout=60, store_widget_state=False).execute()
    path = folder / "lesson.ipynb"
    nbformat.write(notebook, path)
    return path


def nbval(path: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "--nbval-cell-timeout=60",
        "-p",
        "no:cacheprovider",
        "-q",
        path.name,
    ]
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True)


def answer(progress_file: Path, choice: str) -> None:
    asked = Asked("01-P3", "Which value?", ("0.01", "0.1"), "t").with_answer(choice, "t")
    assert ledger.update(progress_file, asked.id, lambda _: asked) is None


def test_predictions_compare_equal_with_different_answers(progress_file: Path, tmp_path: Path) -> None:
    path = executed(LESSON, tmp_path)
    for choice in ("0.01", "0.1"):
        answer(progress_file, choice)
        done = nbval(path)
        assert done.returncode == 0, done.stdout
        assert "4 passed" in done.stdout
        counted = ledger.read(progress_file).predictions["01-P3"].counted
        assert counted is not None
        assert counted.choice == choice


def test_a_different_measured_value_does_not_compare(tmp_path: Path) -> None:
    path = executed(LESSON, tmp_path)
    path.write_text(path.read_text().replace("measured = 0.01", "measured = 0.1"))
    done = nbval(path)
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout


@pytest.fixture
def lesson(tmp_path: Path) -> nbformat.NotebookNode:
    return nbformat.read(executed(LESSON, tmp_path), as_version=4)


def test_the_stored_notebook_reads_without_a_kernel(lesson: nbformat.NotebookNode) -> None:
    question, evidence, panel = lesson.cells[1:]
    assert question.outputs[0].data["text/plain"] == "Prediction 01-P3: Which value?\n  ( ) 0.01\n  ( ) 0.1"
    assert evidence.outputs[0].text == "01-P3 measured: 0.01\n"
    assert panel.outputs[0].data["text/plain"].startswith("Your progress is shown here")
