"""The next step, from what is recorded."""

from pathlib import Path

import pytest

from traceonce.inventory.record import Record, Sitting
from traceonce.show import course_map, ledger, progress
from traceonce.show.course_map import graded_labs, next_steps, note_lab, stops


def measured(*ids: str) -> dict[str, ledger.Asked]:
    return {id: ledger.Asked(id, "What?", ("a", "b"), asked="t").with_reveal("a", "t") for id in ids}


def through(name: str) -> dict[str, ledger.Asked]:
    """Everything measured up to the end of a notebook."""
    ids = [id for stop in stops() if stop.name <= name for id in stop.predictions]
    return measured(*ids)


TAKEN = Record("x", before=Sitting({"01-a": "2.0"}, handed_in="t"))


def steps(predictions: dict[str, ledger.Asked], inventory: Record | None = TAKEN) -> list[str]:
    return list(next_steps(predictions, graded_labs(ledger.progress_path()), inventory))


def test_the_map_has_every_notebook_once_and_labs_at_the_end_of_their_lesson() -> None:
    assert [stop.name for stop in stops()] == [
        "01",
        "02",
        "03",
        "04",
        "05",
        "06",
        "07",
        "08",
        "08b",
        "09",
        "10",
        "11",
        "12",
    ]
    assert [stop.name for stop in stops() if stop.lab is None] == ["08"]


def test_who_has_done_nothing_begins_with_the_inventory_and_lesson_01() -> None:
    first, second = steps({}, None)
    assert first.startswith("Before lesson 01: the inventory, 24 questions")
    assert second == "Next lesson: lesson 01, One step is a state transition (50 minutes)."
    assert steps({}) == [second]


def test_a_lesson_that_was_begun_is_gone_on_with_at_the_prediction_that_waits() -> None:
    total = len(stops()[0].predictions)
    assert steps(measured("01-P1", "01-P2")) == [
        f"Go on with lesson 01, One step is a state transition: 2 of {total} predictions are measured, the next is 01-P3."
    ]


def test_a_finished_lesson_leads_to_the_next_and_to_its_lab() -> None:
    lesson, lab = steps(through("01"))
    assert lesson.startswith("Next lesson: lesson 02,")
    assert lab.startswith("Next lab: lab01_pure_functions (30 minutes), not graded yet.")


def test_the_command_for_a_lab_is_one_that_a_terminal_in_the_checkout_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", "elsewhere/.venv")
    monkeypatch.setattr(course_map, "which", lambda name: None)
    assert " .venv/bin/traceonce grade --trusted work/labs/lab01_pure_functions.ipynb " in steps(through("01"))[1]
    monkeypatch.setattr(course_map, "which", lambda name: f"elsewhere/.venv/bin/{name}")
    assert " traceonce grade --trusted work/labs/lab01_pure_functions.ipynb " in steps(through("01"))[1]


def test_a_lab_is_done_with_full_points_and_comes_after_the_whole_lesson() -> None:
    note_lab("lab01_pure_functions", 3, 5, hidden=False)
    assert steps(through("01"))[1] == "Go on with lab01_pure_functions: 3 of 5 cells with visible asserts."
    note_lab("lab01_pure_functions", 12, 12, hidden=True)
    assert len(steps(through("01"))) == 1
    for name in ("02", "03", "04", "05", "06", "07"):
        note_lab(next(stop.lab for stop in stops() if stop.name == name), 1, 1, hidden=True)
    assert [step.partition(",")[0] for step in steps(through("08"))] == ["Next lesson: lesson 08b"]
    assert steps(through("08b"))[1].startswith("Next lab: lab08_memory")


def test_the_second_pass_comes_when_all_lessons_are_done() -> None:
    assert steps(through("12"))[-1].startswith("All lessons are done: take the inventory again")
    done = Record("x", TAKEN.before, Sitting({"01-a": "2.0"}, handed_in="t"))
    assert not any("inventory" in step for step in steps(through("12"), done))


def test_progress_names_the_next_step_in_text_panel_and_json(progress_file: Path) -> None:
    note_lab("lab01_pure_functions", 12, 12, hidden=True)
    found = progress()
    assert str(found).splitlines()[-1].startswith("Next lesson: lesson 01")
    assert "<h4>Next</h4>" in found.html()
    assert "lab01_pure_functions: 12 of 12 points" in found.html()
    assert found.as_json()["next"] == list(found.next)
    progress_file.write_text("{")
    assert progress().next == ()


def test_an_entry_that_is_no_grade_is_passed_over_and_kept(progress_file: Path) -> None:
    ledger.update_section(progress_file, "labs", lambda _: {"lab01": "passed"})
    assert graded_labs(progress_file) == {}
    note_lab("lab02_random_keys", 1, 2, hidden=True)
    assert ledger.section(progress_file, "labs")["lab01"] == "passed"
    assert set(graded_labs(progress_file)) == {"lab02_random_keys"}
