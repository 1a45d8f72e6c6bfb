"""A batch that is stopped, killed or runs out of room: what is done stays done, nothing goes on running, and a sentence says why."""

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import tinylab

COMMAND = [sys.executable, str(Path(__file__).with_name("command.py")), "grade"]
ENDLESS = {"step": "import os\nfor _ in range(3):\n    os.fork()\nwhile True:\n    pass"}


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def run(*arguments, **options):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300, **options
    )


def whole_records(out):
    """By submission, the time its record was written at; each is whole, with all its reports."""
    found = {}
    for record in out.glob("*/record.json"):
        assert json.loads(record.read_text())["submission"] == record.parent.name
        files = {path.name for path in record.parent.iterdir()}
        assert files == {"record.json", "results.json", "feedback.txt", "feedback.html"}
        found[record.parent.name] = record.stat().st_mtime_ns
    return found


def rows(out):
    return [row["student_id"] for row in csv.DictReader((out / "grades.csv").read_text().splitlines())]


@pytest.fixture
def half_done(tmp_path):
    """A command with one submission done and one that never ends, its folders, and all processes below it."""
    place, out = tmp_path / "class", tmp_path / "out"
    place.mkdir()
    tinylab.write(place, "a_done")
    tinylab.write(place, "b_endless", ENDLESS)
    command = [*COMMAND, str(place), "--out", str(out), "--time-limit", "600"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        me = psutil.Process(process.pid)
        # The forked copies of the endless submission are there: command, supervisor, judge, zygote, warden, init, 8 copies.
        wait_for(lambda: len(me.children(recursive=True)) >= 12 and (out / "a_done" / "record.json").exists())
        family = me.children(recursive=True)
        yield process, family, place, out
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_batch_leaves_whole_records_reports_and_no_process(half_done, number):
    process, family, place, out = half_done
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    assert process.returncode == 128 + number
    assert f"Stopped by {number.name}: finished records are kept" in said
    assert "Traceback" not in said
    before = whole_records(out)
    assert set(before) == {"a_done"}
    assert rows(out) == ["a_done"]

    tinylab.write(place, "b_endless")
    again = run(place, "--out", out, "--time-limit", "600")
    assert again.returncode == 0, again.stderr
    assert "1 unchanged since an earlier run" in again.stderr
    after = whole_records(out)
    assert after["a_done"] == before["a_done"]
    assert rows(out) == ["a_done", "b_endless"]


@pytest.mark.parametrize("victim", ["the command", "the supervisor", "the zygote"])
def test_a_kill_loses_no_more_than_what_was_in_flight(half_done, victim):
    process, family, place, out = half_done
    supervisor = next(child for child in family if "traceonce.grade.supervisor" in child.cmdline())
    zygote = next(child for child in supervisor.children() if "traceonce.grade.zygote" in child.cmdline())
    os.kill({"the command": process, "the supervisor": supervisor, "the zygote": zygote}[victim].pid, signal.SIGKILL)
    said = process.communicate(timeout=60)[1]
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    before = whole_records(out)
    assert set(before) == {"a_done"}
    if victim != "the command":
        assert process.returncode == 3
        assert "run the command again; finished records are kept" in said
        assert rows(out) == ["a_done"]

    tinylab.write(place, "b_endless")
    assert run(place, "--out", out, "--time-limit", "600").returncode == 0
    after = whole_records(out)
    assert set(after) == {"a_done", "b_endless"}
    assert after["a_done"] == before["a_done"]
    assert rows(out) == ["a_done", "b_endless"]


def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path):
    """As under `nohup`, or for a job in the background of a script."""
    place, out = tmp_path / "class", tmp_path / "out"
    place.mkdir()
    for name in ("a", "b"):
        tinylab.write(place, name)
    command = [*COMMAND, str(place), "--out", str(out)]
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=ignore) as process:
        wait_for(lambda: (out / "a" / "record.json").exists())
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert set(whole_records(out)) == {"a", "b"}


def test_a_second_grader_is_refused_while_the_first_goes_on(half_done):
    process, _, place, out = half_done
    second = run(place, "--out", out)
    assert second.returncode == 3
    assert second.stderr.startswith("traceonce: Another grader is writing to")
    assert process.poll() is None
    assert set(whole_records(out)) == {"a_done"}


# A file system of its own in namespaces of its own: no privilege is needed, and nothing of it is seen outside.
FULL_DISK = """
set -e
place=$1 out=$2 kept=$3; shift 3
mkdir "$out"
mount -t tmpfs -o size={size},mode=700 tmpfs "$out"
status=0
"$@" "$place" --out "$out" 2>"$kept/said" || status=$?
echo "$status" >"$kept/status"
cp -rp "$out" "$kept/before"
mount -o remount,size=16m,nr_inodes=4k "$out"
"$@" "$place" --out "$out" 2>"$kept/said-again"
cp -rp "$out" "$kept/after"
"""
READ_ONLY = """
set -e
place=$1 out=$2 kept=$3; shift 3
mkdir "$out"
mount -t tmpfs -o ro tmpfs "$out"
status=0
"$@" "$place" --out "$out" 2>"$kept/said" || status=$?
echo "$status" >"$kept/status"
"""


def on_a_file_system_of_its_own(script, place, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        place,
        tmp_path / "out",
        kept,
    ]
    ran = subprocess.run([*map(str, command), *COMMAND], capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return kept


def test_a_full_disk_is_a_sentence_and_room_lets_it_go_on(tmp_path):
    place = tmp_path / "class"
    place.mkdir()
    names = [f"student{number}" for number in range(6)]
    for name in names:
        tinylab.write(place, name)
    kept = on_a_file_system_of_its_own(FULL_DISK.format(size="72k"), place, tmp_path)
    assert (kept / "status").read_text().strip() == "3"
    said = (kept / "said").read_text()
    assert "cannot be written (No space left on device): make room in" in said
    assert "Traceback" not in said
    records = sorted((kept / "before").glob("*/record.json"))
    assert 0 < len(records) < len(names)
    first = {path.parent.name: json.loads(path.read_text())["status"] for path in records}
    assert set(first.values()) == {"passed"}
    assert f"{len(first)} unchanged since an earlier run" in (kept / "said-again").read_text()
    assert set(whole_records(kept / "after")) == set(names)
    assert rows(kept / "after") == names


@pytest.mark.parametrize(("size", "words"), [("1m,nr_inodes=2", "The seed"), ("8k", "cannot be written")])
def test_a_disk_that_is_full_from_the_start_is_a_sentence_too(tmp_path, size, words):
    place = tmp_path / "class"
    place.mkdir()
    tinylab.write(place, "one")
    kept = on_a_file_system_of_its_own(FULL_DISK.format(size=size), place, tmp_path)
    assert (kept / "status").read_text().strip() == "3"
    said = (kept / "said").read_text()
    assert words in said
    assert "No space left on device" in said
    assert "Traceback" not in said
    assert len((kept / "after" / "seed").read_text().strip()) == 64


def test_an_output_folder_that_cannot_be_written_to_is_a_sentence(tmp_path):
    place = tmp_path / "class"
    place.mkdir()
    tinylab.write(place, "one")
    kept = on_a_file_system_of_its_own(READ_ONLY, place, tmp_path)
    assert (kept / "status").read_text().strip() == "3"
    assert "cannot be written to (Read-only file system): choose another --out." in (kept / "said").read_text()


def test_a_seed_file_that_is_missing_is_a_sentence_and_keeps_records(tmp_path):
    place, out = tmp_path / "class", tmp_path / "out"
    place.mkdir()
    tinylab.write(place, "one")
    assert run(place, "--out", out).returncode == 0
    before = whole_records(out)
    (out / "seed").unlink()
    for arguments in ((), ("--seed-file", tmp_path / "nowhere")):
        ran = run(place, "--out", out, *arguments)
        assert ran.returncode == 3
        assert "seed" in ran.stderr
        assert "Traceback" not in ran.stderr
    assert whole_records(out) == before


def test_a_bar_on_a_terminal_and_plain_lines_elsewhere(tmp_path):
    for name in ("one", "two"):
        tinylab.write(tmp_path, name)
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    command = [*COMMAND, str(tmp_path), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
        assert process.stdout.read() == b""
    os.close(ours)
    assert "━".encode() in shown
    assert b"2/2" in shown
    assert b"two: passed, 5/5" in shown

    (tmp_path / "out" / "one" / "record.json").unlink()
    elsewhere = run(tmp_path, "--out", tmp_path / "out")
    assert elsewhere.stdout == ""
    assert [line.split(" s")[0][:24] for line in elsewhere.stderr.splitlines()[:1]] == ["[2/2] one: passed, 5/5, "]
    assert not {"━", "\x1b", "\r"} & set(elsewhere.stderr)
