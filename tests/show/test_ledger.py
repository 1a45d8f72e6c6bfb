"""The progress file: whole, shared between kernels, and never in the lesson's way."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from traceonce.errors import TraceOnceError
from traceonce.show import ledger
from traceonce.show.ledger import Asked

QUESTION = Asked("01-P3", "Which value?", ("0.01", "0.1"), asked="2025-01-01T00:00:00+00:00")


def answered(choice: str, at: str = "2025-01-01T00:01:00+00:00"):
    return lambda asked: (asked or QUESTION).with_answer(choice, at)


def test_what_is_recorded_is_read_back(progress_file: Path) -> None:
    assert ledger.update(progress_file, "01-P3", answered("0.1")) is None
    asked = ledger.read(progress_file).predictions["01-P3"]
    assert (asked.question, asked.choices) == ("Which value?", ("0.01", "0.1"))
    assert [(a.choice, a.at, a.late) for a in asked.answers] == [("0.1", "2025-01-01T00:01:00+00:00", False)]


def test_all_answers_are_kept_and_the_last_before_the_reveal_counts() -> None:
    asked = (
        QUESTION.with_answer("0.1", "t1").with_answer("0.01", "t2").with_reveal("0.01", "t3").with_answer("0.1", "t4")
    )
    assert [(a.choice, a.at, a.late) for a in asked.answers] == [
        ("0.1", "t1", False),
        ("0.01", "t2", False),
        ("0.1", "t4", True),
    ]
    assert asked.counted is not None
    assert asked.counted.choice == "0.01"
    assert asked.as_measured is True


def test_an_answer_after_the_reveal_is_not_a_prediction() -> None:
    asked = QUESTION.with_reveal("0.01", "t1").with_answer("0.01", "t2")
    assert asked.counted is None
    assert asked.as_measured is None


def test_the_same_choice_and_the_same_measurement_again_change_nothing() -> None:
    asked = QUESTION.with_answer("0.1", "t1").with_reveal("0.01", "t2")
    assert QUESTION.with_answer("0.1", "t1").with_answer("0.1", "t9") == QUESTION.with_answer("0.1", "t1")
    assert asked.with_reveal("0.01", "t9") == asked


@pytest.mark.parametrize(
    "content", [b"{", b"\xff\xfe", b"[1]", b'{"predictions": 3}', b'{"version": 1, "predictions": {"a": {"id": "a"}}}']
)
def test_a_file_that_is_no_progress_file_is_kept_beside_the_new_one(progress_file: Path, content: bytes) -> None:
    progress_file.write_bytes(content)
    assert "keeps this one beside it" in (ledger.read(progress_file).trouble or "")
    said = ledger.update(progress_file, "01-P3", answered("0.1"))
    kept = list(progress_file.parent.glob("progress.unreadable-*.json"))
    assert [path.read_bytes() for path in kept] == [content]
    assert said is not None
    assert str(kept[0]) in said
    assert set(ledger.read(progress_file).predictions) == {"01-P3"}


def test_a_file_of_a_later_version_is_left_alone(progress_file: Path) -> None:
    text = json.dumps({"version": ledger.VERSION + 1, "predictions": "another shape"})
    progress_file.write_text(text)
    assert "later version" in (ledger.update(progress_file, "01-P3", answered("0.1")) or "")
    assert "later version" in (ledger.read(progress_file).trouble or "")
    assert progress_file.read_text() == text


def test_keys_of_others_survive(progress_file: Path) -> None:
    ledger.update(progress_file, "01-P3", answered("0.1"))
    document = json.loads(progress_file.read_text()) | {"labs": {"lab01": "passed"}}
    progress_file.write_text(json.dumps(document))
    ledger.update(progress_file, "01-P4", answered("0.01"))
    document = json.loads(progress_file.read_text())
    assert document["labs"] == {"lab01": "passed"}
    assert set(document["predictions"]) == {"01-P3", "01-P4"}


def test_a_folder_that_cannot_be_made_costs_the_record_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = ledger.update(tmp_path / "file" / "progress.json", "01-P3", answered("0.1"))
    assert said is not None
    assert "cannot be written" in said
    assert "TRACEONCE_PROGRESS" in said


def test_a_path_that_is_a_folder_costs_the_record_and_says_so(tmp_path: Path) -> None:
    assert "cannot be written" in (ledger.update(tmp_path, "01-P3", answered("0.1")) or "")
    assert "cannot be read" in (ledger.read(tmp_path).trouble or "")


def test_a_lock_that_is_held_costs_the_record_after_a_moment(
    progress_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_LOCK_SECONDS", 0.05)
    with ledger._locked(progress_file.with_name("progress.json.lock")):
        said = ledger.update(progress_file, "01-P3", answered("0.1"))
    assert "another program holds" in (said or "")
    assert not progress_file.exists()
    assert ledger.update(progress_file, "01-P3", answered("0.1")) is None


def test_several_kernels_lose_no_answer(progress_file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from traceonce.show import ledger\n"
        "path, kernel = Path(sys.argv[1]), sys.argv[2]\n"
        "for n in range(20):\n"
        "    key = f'{kernel}-{n}'\n"
        "    said = ledger.update(path, key, lambda _: ledger.Asked(key, 'q', ('a', 'b'), 't').with_answer('a', 't'))\n"
        "    assert said is None, said\n"
    )
    kernels = [subprocess.Popen([sys.executable, "-c", program, str(progress_file), name]) for name in "ABC"]
    assert [kernel.wait(timeout=60) for kernel in kernels] == [0, 0, 0]
    assert set(ledger.read(progress_file).predictions) == {f"{kernel}-{n}" for kernel in "ABC" for n in range(20)}


def test_a_write_that_fails_leaves_the_earlier_file_and_no_litter(
    progress_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.update(progress_file, "01-P3", answered("0.1"))
    before = progress_file.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    said = ledger.update(progress_file, "01-P4", answered("0.1"))
    assert "No space left on device" in (said or "")
    assert progress_file.read_bytes() == before
    assert not list(progress_file.parent.glob("*.new"))


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    assert ledger.update(link, "01-P3", answered("0.1")) is None
    assert link.is_symlink()
    assert set(ledger.read(real).predictions) == {"01-P3"}


def test_others_on_the_machine_cannot_read_the_answers(progress_file: Path) -> None:
    ledger.update(progress_file, "01-P3", answered("0.1"))
    assert stat.S_IMODE(progress_file.stat().st_mode) & 0o077 == 0


def test_the_file_is_in_the_users_data_folder_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACEONCE_PROGRESS", str(tmp_path / "named.json"))
    assert ledger.progress_path() == tmp_path / "named.json"
    monkeypatch.delenv("TRACEONCE_PROGRESS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path in ledger.progress_path().parents
    assert ledger.progress_path().name == "progress.json"


def test_a_lesson_is_forgotten_and_the_file_as_it_was_is_kept(progress_file: Path) -> None:
    for key in ("01-P3", "01-P4", "02-K1"):
        assert ledger.update(progress_file, key, answered("0.1")) is None
    whole = progress_file.read_text()
    number, before = ledger.forget(progress_file, "01")
    assert number == 2
    assert set(ledger.read(progress_file).predictions) == {"02-K1"}
    assert before is not None
    assert before.read_text() == whole
    assert ledger.forget(progress_file, "01") == (0, None)
    assert ledger.forget(progress_file, "all")[0] == 1


def test_forgetting_in_a_file_that_is_none_changes_nothing(progress_file: Path) -> None:
    progress_file.parent.mkdir(parents=True, exist_ok=True)
    progress_file.write_text("[]")
    with pytest.raises(TraceOnceError, match="Nothing was forgotten"):
        ledger.forget(progress_file, "all")
    assert progress_file.read_text() == "[]"
