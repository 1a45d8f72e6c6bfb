"""Predictions in plain Python, and the state of their widgets without a front end."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import IPython
import IPython.display
import pytest

from traceonce.show import frontend, ledger, predict, widgets

CHOICES = ["0.01", "0.1", "it raises"]
QUESTION = "Which value does the jitted step use?"


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """Behave as in a kernel; what would go to the notebook lands in the list."""
    outputs: list[dict[str, object]] = []
    shell = SimpleNamespace(kernel=object(), execution_count=1)
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.setattr(IPython.display, "publish_display_data", lambda data: outputs.append(data))
    return outputs


def _instance(model_id: str) -> widgets.VerdictWidget:
    from ipywidgets.widgets import widget

    return widget._instances[model_id]


def test_plain_python_prints_the_question_and_its_choices(capsys: pytest.CaptureFixture[str]) -> None:
    predict("01-P3", QUESTION, CHOICES)
    assert capsys.readouterr().out == (
        "Prediction 01-P3: Which value does the jitted step use?\n  ( ) 0.01\n  ( ) 0.1\n  ( ) it raises\n"
    )


def test_plain_python_does_not_load_the_widget_machinery(progress_file: Path) -> None:
    program = "import sys; from traceonce import predict; predict('01-P3', 'q?', ['a', 'b']).reveal('a'); print('anywidget' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["01-P3 measured: a", "False"]


@pytest.mark.parametrize("answer", [None, *CHOICES])
def test_reveal_prints_the_same_whatever_was_predicted(capsys: pytest.CaptureFixture[str], answer: str | None) -> None:
    guess = predict("01-P3", QUESTION, CHOICES)
    if answer is not None:
        guess.choose(answer)
    capsys.readouterr()
    guess.reveal(0.01)
    captured = capsys.readouterr()
    assert captured.out == "01-P3 measured: 0.01\n"
    assert captured.err == ""


def test_a_measured_value_that_is_no_choice_is_told_to_the_author() -> None:
    guess = predict("01-P3", QUESTION, CHOICES)
    with pytest.raises(
        ValueError, match=r"01-P3: the measured value '0.1000' is none of the choices .*Round or format"
    ):
        guess.reveal("0.1000")
    assert ledger.read().predictions["01-P3"].measured is None


@pytest.mark.parametrize(
    ("id", "question", "choices"), [("", "q", "ab"), ("i", "", "ab"), ("i", "q", ["a"]), ("i", "q", [1, "1"])]
)
def test_a_question_that_cannot_be_asked_is_refused(id: str, question: str, choices: list[object]) -> None:
    with pytest.raises(ValueError, match="needs"):
        predict(id, question, choices)


def test_answers_are_recorded_with_their_time(progress_file: Path) -> None:
    guess = predict("01-P3", QUESTION, CHOICES)
    guess.choose("0.1")
    guess.choose("0.01")
    entry = json.loads(progress_file.read_text())["predictions"]["01-P3"]
    assert [answer["choice"] for answer in entry["answers"]] == ["0.1", "0.01"]
    assert all(answer["at"].endswith("+00:00") for answer in entry["answers"])


def test_a_choice_that_is_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the choices"):
        predict("01-P3", QUESTION, CHOICES).choose("0.2")


def test_the_cell_run_again_keeps_the_answer() -> None:
    predict("01-P3", QUESTION, CHOICES).choose("0.1")
    again = predict("01-P3", QUESTION, CHOICES)
    assert again.answer == "0.1"
    again.reveal(0.01)
    assert again.verdict == "You predicted 0.1; measured 0.01: not as predicted."


def test_an_answer_after_the_reveal_does_not_become_the_prediction() -> None:
    guess = predict("01-P3", QUESTION, CHOICES)
    guess.choose("0.1")
    guess.reveal(0.01)
    again = predict("01-P3", QUESTION, CHOICES)
    again.choose("0.01")
    again.reveal(0.01)
    assert again.verdict == "You predicted 0.1; measured 0.01: not as predicted."
    assert [answer.choice for answer in ledger.read().predictions["01-P3"].answers] == ["0.1", "0.01"]


def test_a_file_that_cannot_be_written_costs_nothing_but_the_record(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRACEONCE_PROGRESS", str(tmp_path / "file" / "progress.json"))
    predict("01-P3", QUESTION, CHOICES).choose("0.1")
    again = predict("01-P3", QUESTION, CHOICES)
    assert again.answer == "0.1"
    again.reveal(0.1)
    assert again.verdict == "You predicted 0.1; measured 0.1: as predicted."
    assert "cannot be written" in again.widget().note


def test_a_broken_file_is_reported_in_the_widget(progress_file: Path) -> None:
    progress_file.write_text("{")
    guess = predict("01-P3", QUESTION, CHOICES)
    assert "could not be read" in guess.widget().note


def test_the_widget_holds_the_question_and_takes_the_answer() -> None:
    guess = predict("01-P3", QUESTION, CHOICES)
    widget = guess.widget()
    assert (widget.key, widget.question, widget.choices, widget.answer) == ("01-P3", QUESTION, CHOICES, None)
    widget.set_state({"answer": "0.1"})  # as a front end does
    assert guess.answer == "0.1"
    assert ledger.read().predictions["01-P3"].counted.choice == "0.1"


def test_the_notebook_gets_the_question_as_text_and_as_widget(published: list[dict[str, object]]) -> None:
    guess = predict("01-P3", QUESTION, CHOICES)
    assert len(published) == 1
    assert published[0]["text/plain"] == str(guess)
    assert published[0][frontend.WIDGET_VIEW]["model_id"] == guess.widget().model_id


def test_the_last_line_of_the_cell_does_not_show_it_twice(published: list[dict[str, object]]) -> None:
    guess = predict("01-P3", QUESTION, CHOICES)
    guess._ipython_display_()
    assert len(published) == 1
    IPython.get_ipython().execution_count = 2
    guess._ipython_display_()
    assert len(published) == 2


@pytest.mark.parametrize(
    ("answer", "outcome", "sentence"),
    [
        ("0.01", "as", "You predicted 0.01; measured 0.01: as predicted."),
        ("0.1", "other", "You predicted 0.1; measured 0.01: not as predicted."),
        (None, "none", "Measured 0.01. No prediction was recorded before this"),
    ],
)
def test_the_verdict_goes_to_both_widgets(
    published: list[dict[str, object]], answer: str | None, outcome: str, sentence: str
) -> None:
    guess = predict("01-P3", QUESTION, CHOICES)
    if answer is not None:
        guess.widget().set_state({"answer": answer})
    guess.reveal(0.01)
    card = _instance(published[-1][frontend.WIDGET_VIEW]["model_id"])
    assert card.outcome == outcome
    assert card.verdict.startswith(sentence)
    assert guess.widget().verdict == card.verdict
    assert guess.widget().measured == "0.01"
    assert published[-1]["text/plain"] == ""
