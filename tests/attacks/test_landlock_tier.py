"""The landlock tier, with what it promises: the same attacks and more, as root's child with an id of its own and as an ordinary user's."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attack_cells as attacks
import psutil
import pytest
import reachable
import tinylab

from traceonce.errors import UsageError
from traceonce.grade import grade_paths
from traceonce.grade.breakouts import NETWORK
from traceonce.grade.selftest import ATTEMPTS
from traceonce.sandbox import landlock, landlock_tier

HONEST_SCORE = 4
GRADE = [sys.executable, str(Path(tinylab.__file__).with_name("command.py")), "grade"]

BREATHLESS = "import os\nwhile True:\n    try:\n        os.fork()\n    except BaseException:\n        pass"
RIGHT = {
    "reference": {},
    "fork_bomb": {"double": BREATHLESS},
    "exits": {"double": "import os\nos._exit(0)"},
    "hungry": {"double": "import numpy as np\nkept = []\nwhile True:\n    kept.append(np.ones(16_000_000))"},
}


@pytest.fixture(scope="module", params=["root", "ordinary"])
def graded(request, listener):
    """Records of the attacks by name, the output folder and what the command said, with the command run as either."""
    folder = Path(tempfile.mkdtemp(prefix="traceonce-landlock-"))  # pytest's own folders are closed to other users
    place, out, hold = folder / "class", folder / "out", folder / "hold"
    place.mkdir()
    for name, cell in attacks.ATTACKS.items():
        tinylab.write(place, name, {"double": cell})
    for name, changes in RIGHT.items():
        tinylab.write(place, name, changes)
    files = attacks.READ_ALL_FILES
    hidden = tinylab.COURSE / "tests" / "hidden" / f"test_{tinylab.LAB}.py"
    for name, path in {"CANARY_FILE": hidden, "SEED_FILE": folder / "seed", "OUT": out}.items():
        files = files.replace(name, repr(str(path)))
    # That a file exists can be seen in this tier, not what is in it.
    files = files.replace('print("EXISTS" if os.path.exists(path)', 'print("EXISTS" if can_read(path)')
    files = (
        "def can_read(path):\n    try:\n        os.close(os.open(path, os.O_RDONLY))\n    except OSError:\n        return False\n    return True\n"
        + files
    )
    tinylab.write(place, "read_all_files", {"double": files + attacks.WRONG})
    port = listener.getsockname()[1]
    tinylab.write(place, "network", {"double": NETWORK.replace("PORT", str(port)) + attacks.WRONG})
    (folder / "seed").write_text(attacks.SEED)
    as_user = request.param == "ordinary"
    if as_user and os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, reachable.ORDINARY, reachable.ORDINARY)
    limits = [
        "--seed-file",
        str(folder / "seed"),
        "--time-limit",
        "60",
        "--memory-limit",
        "768",
        "--isolation",
        "landlock",
    ]
    whole = reachable.command([*GRADE, str(place), "--out", str(out), *limits], hold=hold, ordinary=as_user)
    environment = os.environ | {"HOME": str(folder)}
    ran = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=600, env=environment)
    assert ran.returncode == 0, ran.stderr
    yield {path.parent.name: json.loads(path.read_text()) for path in out.glob("*/record.json")}, out
    shutil.rmtree(folder)


def printed(graded, name):
    return next(cell["printed"] for cell in graded[0][name]["cells"] if cell["grade_id"] == "double")


def test_this_kernel_has_what_the_tier_needs():
    assert landlock.abi() >= landlock.NEEDED_ABI


def test_every_record_and_result_says_the_tier(graded):
    records, out = graded
    assert {record["tier"] for record in records.values()} == {"landlock"}
    told = {json.loads(path.read_text())["extra_data"]["tier"] for path in out.glob("*/results.json")}
    assert told == {"landlock"}


def test_no_attack_scores_more_than_the_same_wrong_code(graded):
    records, _ = graded
    assert records["honest"]["score"] == HONEST_SCORE
    for name in (*attacks.ATTACKS, "network", "read_all_files"):
        assert records[name]["score"] <= HONEST_SCORE, name
        assert records[name]["status"] != "passed", name
        assert not records[name]["defect"], name


def test_right_answers_get_full_marks_and_limits_hold(graded):
    records, _ = graded
    assert (records["reference"]["status"], records["reference"]["score"]) == ("passed", 5)
    assert records["exits"]["status"] == "crashed"
    assert records["hungry"]["status"] == "memory", records["hungry"]
    # The bomb costs the task that it is in.
    assert records["fork_bomb"]["status"] in ("timeout", "crashed")
    assert records["fork_bomb"]["score"] == 3


def test_nothing_hidden_can_be_read(graded):
    text = printed(graded, "read_all_files")
    assert "FOUND" not in text
    assert "EXISTS" not in text
    assert text.count("absent") == 9


def test_no_memory_and_no_process_can_be_looked_into(graded):
    records, _ = graded
    assert "FOUND" not in printed(graded, "read_all_memory")
    for name in ("read_all_memory", "look_around"):  # there is no /proc to open
        cell = next(cell for cell in records[name]["cells"] if cell["grade_id"] == "double")
        assert "PermissionError" in cell["reason"]


def test_nothing_can_be_written_anywhere(graded):
    assert "written []" in printed(graded, "write_everywhere")
    assert "OPENED" not in printed(graded, "write_everywhere")


def test_no_socket_can_be_made(graded, listener):
    text = printed(graded, "network")
    assert "families []" in text
    assert "CONNECTED" not in text
    with pytest.raises(TimeoutError):
        listener.accept()


def test_namespaces_tracing_programs_and_limits_are_refused(graded):
    text = printed(graded, "break_out")
    assert "alive" in text
    assert "DONE" not in text
    assert "RAISED" not in text
    assert text.count("exec EPERM") == 3


def test_forged_messages_are_tampering(graded):
    records, _ = graded
    assert {records[name]["status"] for name in ("speak_out_of_turn", "garbage", "oversized")} == {"tampering"}


def test_nothing_outlives_its_grading(graded):
    assert "started" in printed(graded, "outlive")
    names = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout
    assert "OUTLIVER" not in names


@pytest.mark.parametrize(("victim", "ordinary"), [("supervisor", True), ("zygote", False)])
def test_nothing_survives_a_kill_of_the(victim, ordinary):
    folder = Path(tempfile.mkdtemp(prefix="traceonce-landlock-"))
    (folder / "class").mkdir()
    stay = "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\nwhile True:\n    pass"
    tinylab.write(folder / "class", "endless", {"step": stay})
    if ordinary and os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, reachable.ORDINARY, reachable.ORDINARY)
    command = [
        *GRADE,
        str(folder / "class"),
        "--out",
        str(folder / "out"),
        "--time-limit",
        "600",
        "--isolation",
        "landlock",
    ]
    whole = reachable.command(command, hold=folder / "hold", ordinary=ordinary)
    environment = os.environ | {"HOME": str(folder)}
    with subprocess.Popen(whole, stderr=subprocess.PIPE, text=True, env=environment) as process:
        me = psutil.Process(process.pid)
        end = time.monotonic() + 120
        # Supervisor, judge and its fork, zygote, guard, child, and the three that it forked.
        while len(family := me.children(recursive=True)) < 9:
            assert time.monotonic() < end, [one.name() for one in family]
            time.sleep(0.1)
        chosen = next(one for one in family if f"traceonce.grade.{victim}" in one.cmdline())
        chosen.kill()
        said = process.communicate(timeout=60)[1]
        _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    assert process.returncode == 3
    assert "finished records are kept" in said
    shutil.rmtree(folder)


@pytest.mark.parametrize("ordinary", [False, True])
def test_the_selftest_holds_in_this_tier(tmp_path, ordinary):
    command = [sys.executable, "-m", "traceonce", "doctor", "--sandbox", "--isolation", "landlock", "--json"]
    whole = reachable.command(command, hold=tmp_path / "hold", ordinary=ordinary)
    environment = os.environ | {"HOME": "/", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=300, env=environment)
    document = json.loads(ran.stdout)
    assert [found for found in document["findings"] if found["level"] != "OK"] == []
    assert len(document["findings"]) == len(ATTEMPTS)


def test_python_in_a_closed_folder_is_refused_with_the_reason(tmp_path):
    """As root's child student code runs as somebody else, who may not be able to read the environment."""
    closed = tmp_path / "closed"
    (closed / "python").mkdir(parents=True)
    closed.chmod(0o700)
    landlock_tier.see_that_it_can_be_read([closed / "python"])
    if os.geteuid() == 0:
        code = f"import os; os.setresuid(1234, 1234, 1234); from pathlib import Path; see([Path({str(closed / 'python')!r})])"
        code = f"from traceonce.sandbox.landlock_tier import see_that_it_can_be_read as see; {code}"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        said = ran.stderr
    else:
        closed.chmod(0)
        with pytest.raises(OSError, match="cannot be read") as refused:
            landlock_tier.see_that_it_can_be_read([closed / "python"])
        closed.chmod(0o700)
        said = str(refused.value)
    assert f"{closed / 'python'} cannot be read by the id that student code runs as" in said


def test_a_tier_that_is_not_there_is_wrong_usage_and_none_is_taken_in_its_place(tmp_path):
    tinylab.write(tmp_path, "one")
    with pytest.raises(UsageError, match="choose from namespaces, bubblewrap, landlock"):
        grade_paths([tmp_path / "one.ipynb"], out=tmp_path / "out", root=tinylab.COURSE, tier="none")


def test_an_older_kernel_is_refused(monkeypatch):
    monkeypatch.setattr(landlock, "abi", lambda: 5)
    with pytest.raises(OSError, match="Landlock has version 5 here, and 6 is needed"):
        landlock_tier.enter({})


def test_signals_that_would_leave_the_domain_are_noticed():
    with pytest.raises(OSError, match="does not keep signals"):
        landlock_tier._see_that_signals_stay(os.getpid())
