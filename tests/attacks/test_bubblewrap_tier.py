"""The bubblewrap tier: it holds what the namespaces tier holds, says so in each record, and is refused with a reason where it cannot be had.

A Python is started for each submission here, so that few of the attacks are made; `traceonce doctor --sandbox --isolation bubblewrap` makes the rest.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import attack_cells as attacks
import pytest
import reachable
import tinylab

from traceonce.grade.breakouts import NETWORK
from traceonce.sandbox import bubblewrap

HONEST_SCORE = 4
GRADE = [sys.executable, str(Path(tinylab.__file__).with_name("command.py")), "grade"]

FLOOD = "import os\nfor number in range(1_000_000):\n    os.mkdir(f'/scratch/d{number}')"
STAY = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n" + attacks.OUTLIVE


def grade(folder, *, ordinary):
    """Grade ``class/`` in a folder with the command, as root or as an ordinary user; what it said, and the records."""
    if ordinary and os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, reachable.ORDINARY, reachable.ORDINARY)
    options = ["--seed-file", str(folder / "seed"), "--workers", "2", "--memory-limit", "768", "--time-limit", "120"]
    command = [*GRADE, str(folder / "class"), "--out", str(folder / "out"), "--isolation", "bubblewrap", *options]
    whole = reachable.command(command, hold=folder / "hold", ordinary=ordinary)
    environment = os.environ | {"HOME": str(folder)}
    ran = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=600, env=environment)
    assert ran.returncode == 0, ran.stderr
    return {path.parent.name: json.loads(path.read_text()) for path in (folder / "out").glob("*/record.json")}


@pytest.fixture
def folder():
    """A class's folder that other users may enter: pytest's own are closed to them."""
    made = Path(tempfile.mkdtemp(prefix="traceonce-bubblewrap-"))
    (made / "class").mkdir()
    (made / "seed").write_text(attacks.SEED)
    yield made
    shutil.rmtree(made)


def printed(record):
    return next(cell["printed"] for cell in record["cells"] if cell["grade_id"] == "double")


def test_attacks_get_no_further_than_in_the_namespaces_tier(folder, listener):
    files = attacks.READ_ALL_FILES
    hidden = tinylab.COURSE / "tests" / "hidden" / f"test_{tinylab.LAB}.py"
    for name, path in {"CANARY_FILE": hidden, "SEED_FILE": folder / "seed", "OUT": folder / "out"}.items():
        files = files.replace(name, repr(str(path)))
    network = NETWORK.replace("PORT", str(listener.getsockname()[1]))
    inside = "\n".join((files, attacks.LOOK_AROUND, attacks.WRITE_EVERYWHERE, network)) + attacks.WRONG
    out = attacks.BREAK_OUT + STAY + attacks.WRONG
    for name, cell in {"inside": inside, "out": out, "flood": FLOOD}.items():
        tinylab.write(folder / "class", name, {"double": cell})
    tinylab.write(folder / "class", "reference")
    records = grade(folder, ordinary=False)

    assert {record["tier"] for record in records.values()} == {"bubblewrap"}
    assert (records["reference"]["status"], records["reference"]["score"]) == ("passed", 5)
    assert (records["inside"]["score"], records["out"]["score"]) == (HONEST_SCORE, HONEST_SCORE), records["out"]
    assert records["flood"]["status"] == "crashed", records["flood"]  # its files are counted from outside of it

    text = printed(records["inside"])
    for word in ("FOUND", "EXISTS", "OPENED", "CONNECTED"):
        assert word not in text
    assert text.count("absent") == 9
    assert "pids [1, 2]" in text
    assert "fds [0, 1, 2, 3, 4]" in text
    assert "ids 1000 1000 1000 []" in text
    assert "caps " + " ".join(["0" * 16] * 4) in text
    assert "privs 1 2" in text
    assert "families [1]" in text
    with pytest.raises(TimeoutError):
        listener.accept()
    text = printed(records["out"])
    assert "alive" in text
    assert "DONE" not in text
    assert "RAISED" not in text
    assert text.count("exec EPERM") == 3
    names = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout
    assert "OUTLIVER" not in names


def test_an_ordinary_user_can_grade_with_it(folder):
    tinylab.write(folder / "class", "reference")
    record = grade(folder, ordinary=True)["reference"]
    assert (record["tier"], record["status"]) == ("bubblewrap", "passed")
    assert record["cpu_seconds"] > 0.3  # the start of its own Python is counted


def test_where_bwrap_may_make_no_namespaces_the_command_says_so_and_grades_nothing(folder):
    tinylab.write(folder / "class", "reference")
    closed = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    command = [*GRADE, str(folder / "class"), "--out", str(folder / "out"), "--isolation", "bubblewrap"]
    ran = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", closed, "sh", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 3
    assert "The sandbox cannot be built here (" in ran.stderr
    assert "bubblewrap 0.8 or newer" in ran.stderr
    assert not list((folder / "out").glob("*/record.json"))


def test_a_machine_without_bwrap_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(bubblewrap, "_PROGRAMS", str(tmp_path))
    with pytest.raises(OSError, match="there is no program bwrap"):
        bubblewrap.enter({})


def test_what_bwrap_itself_refuses_is_told_in_its_words(monkeypatch):
    said = "bwrap: The --size option is not permitted in setuid mode"
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to the user that bwrap runs as
        program = Path(folder, "bwrap")
        program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
        for path in (program, program.parent):
            path.chmod(0o755)
        monkeypatch.setattr(bubblewrap, "_PROGRAMS", folder)
        with pytest.raises(OSError, match="not permitted in setuid mode"):
            bubblewrap.enter({})


def test_an_older_kernel_is_refused(monkeypatch):
    monkeypatch.setattr(platform, "release", lambda: "5.10.0-23-amd64")
    with pytest.raises(OSError, match=r"this is Linux 5\.10"):
        bubblewrap.enter({})


def test_nothing_else_is_ever_taken_for_its_own_process_namespace():
    told = bubblewrap.Start((3, 4), 5, bubblewrap.Limits())
    with pytest.raises(OSError, match="the process namespace is not new"):
        bubblewrap.be_init(lambda: None, bubblewrap.Start.from_text(told.text))
