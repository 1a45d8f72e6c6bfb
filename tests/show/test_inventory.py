"""The concept inventory: its answers are true, its record is the learner's, an export names nobody, a class can be read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from traceonce.errors import TraceOnceError, UsageError
from traceonce.inventory.execution import measure
from traceonce.inventory.export import export, summarise
from traceonce.inventory.questions import DO_NOT_KNOW, answers, questions
from traceonce.inventory.record import Record, Sitting
from traceonce.inventory.scores import gains
from traceonce.show import inventory, ledger, progress, survey


@pytest.fixture(autouse=True)
def fresh_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "_session", [])


def wrong(id: str) -> str:
    question = next(question for question in questions() if question.id == id)
    return next(choice.text for choice in question.choices if choice.misconception)


def take(when: str, right: int) -> None:
    """Answer all questions, the first `right` of them right, and hand in."""
    taken = inventory(when)
    for number, question in enumerate(questions()):
        taken.choose(question.id, answers()[question.id] if number < right else wrong(question.id))
    taken.hand_in()


def test_the_stored_answers_are_what_the_code_prints_here() -> None:
    assert measure(questions()) == dict(answers())


def test_every_lesson_has_two_questions() -> None:
    assert [question.id for question in questions()] == [f"{n:02}-{letter}" for n in range(1, 13) for letter in "ab"]


def test_a_question_is_printed_with_its_code_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    inventory("before").ask("01")
    said = capsys.readouterr().out
    assert "Question 01-a: What does the last line print?" in said
    assert "        return scale * x\n" in said
    assert f"  ( ) 5.0\n  ( ) it raises NameError\n  ( ) {DO_NOT_KNOW}\n" in said


def test_a_pass_with_open_questions_is_not_handed_in_unless_it_is_said() -> None:
    taken = inventory("before")
    taken.choose("01-a", "5.0")
    assert "1 of 24 answered, not handed in" in str(taken.hand_in())
    assert "Open: 01-b, 02-a" in str(taken.hand_in())
    assert "handed in, 1 of 24 answered" in str(taken.hand_in(unanswered=True))


def test_nothing_says_what_is_right_before_the_second_pass_is_handed_in() -> None:
    take("before", right=24)
    first = inventory("before").hand_in()
    after = inventory("after")
    after.choose("01-a", answers()["01-a"])
    for shown in (str(first), first.html(), str(after.hand_in()), str(progress()), progress().html()):
        assert "right before" not in shown
        assert "is right" not in shown
    assert "right before" in str(inventory("after").hand_in(unanswered=True))


def test_the_first_pass_is_closed_when_the_second_begins() -> None:
    taken = inventory("before")
    taken.choose("01-a", "5.0")
    inventory("after").choose("01-b", "[0.0, 0.0]")
    taken.choose("01-a", "2.0")
    assert taken.answer("01-a") == "5.0"
    assert "closed when the second pass began" in str(taken.hand_in())


def test_an_answer_after_the_hand_in_is_not_taken() -> None:
    take("before", right=3)
    inventory("before").choose("01-a", wrong("01-a"))
    assert inventory("before").answer("01-a") == answers()["01-a"]


def test_the_gain_is_the_share_of_what_was_left_to_learn() -> None:
    take("before", right=1)
    take("after", right=5)
    lines = str(progress()).splitlines()
    assert [line.split() for line in lines if line.startswith(("01 ", "02 ", "03 ", "04 ", "all "))] == [
        ["01", "2", "1", "2", "1.00"],
        ["02", "2", "0", "2", "1.00"],
        ["03", "2", "0", "1", "0.50"],
        ["04", "2", "0", "0", "0.00"],
        ["all", "24", "1", "5", "0.17"],
    ]
    result = str(inventory("after").hand_in())
    assert f"04-a: {answers()['04-a']} is right." in result
    assert "vmap averages over the batch. It does not; see lesson 04." in result


def test_no_gain_is_made_of_one_answer_or_of_a_full_score() -> None:
    right = dict(answers())
    record = Record("x", Sitting({"01-a": right["01-a"], "02-a": right["02-a"]}), Sitting({"01-a": right["01-a"]}))
    first, second, *_, total = gains([record], questions(), right)
    assert (first.pairs, first.normalised) == (1, None)
    assert (second.pairs, second.normalised) == (0, None)
    assert (total.pairs, total.before, total.after) == (1, 1, 1)


def test_answers_survive_the_kernel_and_keep_the_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    inventory("before").choose("01-a", "5.0")
    ledger.update(ledger.progress_path(), "01-P3", lambda _: ledger.Asked("01-P3", "What?", ("a", "b"), asked="t"))
    monkeypatch.setattr(survey, "_session", [])
    assert inventory("before").answer("01-a") == "5.0"
    assert set(ledger.read().predictions) == {"01-P3"}


def test_a_spoiled_section_is_kept_and_said(progress_file: Path) -> None:
    ledger.update_section(progress_file, "inventory", lambda _: ["not", "answers"])
    assert progress().inventory is None
    assert survey._update(lambda record: record.with_answer("before", "01-a", "5.0")) == (
        "In the progress file the answers of the inventory have not the shape of a record; "
        "they are kept in it, and a new record was started."
    )
    stored = json.loads(progress_file.read_text())["inventory"]
    assert stored["unreadable"] == [["not", "answers"]]
    assert stored["before"]["answers"] == {"01-a": "5.0"}


def test_a_file_in_the_way_of_the_folder_costs_the_record_alone(
    progress_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress_file.write_text("x")
    monkeypatch.setenv("TRACEONCE_PROGRESS", str(progress_file / "progress.json"))
    said = survey._update(lambda record: record.with_answer("before", "01-a", "5.0"))
    assert "This was not recorded" in (said or "")
    assert inventory("before").answer("01-a") == "5.0"


def test_a_notebook_gets_the_same_text_whatever_was_answered(kernel) -> None:
    inventory("before").choose("01-a", "5.0")
    taken = inventory("before")
    taken.ask("01")
    taken.hand_in()._ipython_display_()
    texts = [output["text/plain"] for output in kernel.outputs]
    assert texts[0].endswith(f"  ( ) {DO_NOT_KNOW}")
    assert "5.0" not in texts[-1]
    widget = taken._asked["01-a"].widget()
    assert (widget.answer, widget.locked, widget.title) == ("5.0", False, "Question 01-a, before the course")
    widget.answer = "2.0"  # as the front end does
    assert inventory("before").answer("01-a") == "2.0"
    taken.hand_in(unanswered=True)
    assert widget.locked


# --- what a teacher gets ---------------------------------------------------------------------------------------------


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "traceonce", "progress", *arguments], capture_output=True, text=True)


def test_an_export_holds_choices_and_a_random_number_and_nothing_else(tmp_path: Path, progress_file: Path) -> None:
    take("before", right=2)
    inventory("after").choose("01-a", "2.0")
    done = command("--export", str(tmp_path / "out.json"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("25 answers are in ")
    text = (tmp_path / "out.json").read_text()
    document = json.loads(text)
    assert set(document) == {"format", "version", "id", "edition", "answers"}
    assert document["id"] == json.loads(progress_file.read_text())["inventory"]["id"]
    assert document["answers"]["01-a"] == {"before": "2.0", "after": "2.0"}
    allowed = {text for question in questions() for text in question.texts}
    assert all(
        set(entry) <= {"before", "after"} and set(entry.values()) <= allowed for entry in document["answers"].values()
    )
    assert str(tmp_path) not in text
    assert ledger.now()[:4] + "-" not in text  # no date


def test_an_export_of_nothing_and_over_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceOnceError, match="nothing to export"):
        export(None, tmp_path / "out.json")
    taken = tmp_path / "mine.json"
    taken.write_text("{}")
    inventory("before").choose("01-a", "5.0")
    with pytest.raises(UsageError, match="is no export"):
        export(survey.read_record(), taken)
    assert taken.read_text() == "{}"
    with pytest.raises(TraceOnceError, match="cannot be written"):
        export(survey.read_record(), tmp_path / "no" / "folder.json")


def test_a_class_is_read_by_lesson_and_by_misconception(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    right = answers()["01-a"]
    for name, before, after in (("a", "5.0", right), ("b", right, right), ("c", "5.0", "5.0"), ("d", "5.0", None)):
        sittings = Sitting({"01-a": before}), Sitting({"01-a": after} if after else {})
        export(Record(name, *sittings), folder / f"{name}.json")
    (folder / "copy.json").write_bytes((folder / "a.json").read_bytes())
    (folder / "spoiled.json").write_text("{")
    (folder / "other.json").write_text(
        '{"format": "traceonce-inventory", "version": 1, "id": "x", "answers": {"01-a": 3}}'
    )
    (folder / "large.json").write_text(" " * 200_000)
    summary = summarise(folder)
    assert (summary.learners, summary.both) == (4, 3)
    assert summary.answered["01"] == (4, 1, 3, 2)
    assert (summary.gains[0].pairs, summary.gains[0].before, summary.gains[0].after) == (3, 1, 2)
    assert [(b.misconception, b.before, b.after) for b in summary.beliefs] == [
        ("a compiled function reads globals at each call", 3, 1)
    ]
    assert len(summary.notes) == 4
    said = command("--class", str(folder)).stdout
    assert "4 learners, 3 of them with answers from before and after." in said
    assert "01      1 of 4 (25 %)  2 of 3 (67 %)  0.50" in said
    assert "01-a a compiled function reads globals at each call" in said
    assert json.loads(command("--class", str(folder), "--json").stdout)["gains"][0]["normalised"] == 0.5


def test_a_folder_without_exports_is_refused(tmp_path: Path) -> None:
    done = command("--class", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds no export of the inventory" in done.stderr
    assert command("--class", str(tmp_path / "no")).returncode == 2
    assert "Give one of" in command("--class", str(tmp_path), "--export", "x").stderr


def test_the_inventory_can_be_forgotten_alone(progress_file: Path) -> None:
    take("before", right=3)
    ledger.update(progress_file, "01-P3", lambda _: ledger.Asked("01-P3", "What?", ("a", "b"), asked="t"))
    number, before = ledger.forget(progress_file, "inventory")
    assert (number, before is not None and before.exists()) == (24, True)
    assert ledger.section(progress_file, "inventory") is None
    assert set(ledger.read().predictions) == {"01-P3"}
    assert ledger.forget(progress_file, "inventory") == (0, None)
