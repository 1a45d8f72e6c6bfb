"""`traceonce doctor --sandbox`: what it finds in the sandbox, and that it would find a hole."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
from typer.testing import CliRunner

from traceonce.cli import app
from traceonce.doctor.findings import Finding
from traceonce.grade import selftest
from traceonce.sandbox.limits import Limits

COMMAND = [sys.executable, "-m", "traceonce", "doctor", "--sandbox"]
# Every way out that docs/grading.md lists.
SUBJECTS = {
    "hidden files",
    "other processes",
    "writing outside",
    "network",
    "system calls",
    "privileges",
    "same user",
    "signals",
    "fork bomb",
    "memory",
    "address space",
    "disk space",
    "outliving",
}


def test_every_way_out_is_held_here_and_nothing_is_left():
    ran = subprocess.run([*COMMAND, "--json"], capture_output=True, text=True, check=False)
    document = json.loads(ran.stdout)
    assert [found for found in document["findings"] if found["level"] != "OK"] == []
    assert {found["subject"] for found in document["findings"]} == SUBJECTS
    assert ran.returncode == document["exit_code"] == 0
    assert not [process for process in psutil.process_iter(["name"]) if process.info["name"].startswith("OUT")]


def test_the_table_has_a_line_for_each(monkeypatch):
    """What the command prints of given findings: the sandbox itself was tried above."""
    asked = []
    found = [Finding("OK", subject, "held") for subject in sorted(SUBJECTS)]
    monkeypatch.setattr(selftest, "examine_sandbox", lambda tier: asked.append(tier) or found)
    shown = CliRunner().invoke(app, ["doctor", "--sandbox", "--isolation", "landlock"])
    assert (shown.exit_code, asked) == (0, ["landlock"])
    assert [line.split()[0] for line in shown.output.splitlines()[: len(SUBJECTS)]] == ["OK"] * len(SUBJECTS)
    assert shown.output.splitlines()[-1] == f"{len(SUBJECTS)} OK, 0 WARN, 0 FAIL"
    found[0] = Finding("FAIL", found[0].subject, "READ", "do not")
    assert CliRunner().invoke(app, ["doctor", "--sandbox"]).exit_code == 1


def test_a_machine_without_namespaces_is_told_so_and_exits_3():
    closed = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
        "sh",
    ]
    ran = subprocess.run([*closed, *COMMAND], capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "The sandbox cannot be built here" in ran.stderr


# What runs without a sandbox below: nothing that would harm the machine where nothing holds it.
HARMLESS = {
    "hidden files",
    "other processes",
    "network",
    "signals",
    "fork bomb",
    "memory",
    "address space",
    "outliving",
    "privileges",
    "same user",
}


@pytest.fixture(scope="module")
def bare():
    """The findings about no sandbox at all: each cell in a plain process of this user."""
    left = []

    def run(code):
        # As the sandbox does: what it prints is taken when it is through, whatever it leaves behind.
        code += "\nprint('THROUGH', flush=True)"
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        left.append(psutil.Process(process.pid))
        printed = ""
        for line in process.stdout:
            if line.startswith("THROUGH"):
                break
            printed += line
        process.stdout.close()
        return printed

    def harmless(code):
        attempt = next(attempt for attempt in selftest.ATTEMPTS if code.endswith(attempt.code))
        return run(code) if attempt.subject in HARMLESS else ""

    dummy = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    limits = Limits(processes=2, memory_mb=128, tmp_mb=1, shm_mb=1)
    with selftest.surroundings(limits, dummy) as around:
        found = {finding.subject: finding for finding in selftest.examine(harmless, around)}
        mark = around.mark
    dummy.kill()
    dummy.wait()
    for process in [*left, *(process for process in psutil.process_iter(["name"]) if process.info["name"] == mark)]:
        if process.is_running():
            os.kill(process.pid, signal.SIGKILL)
    return found


@pytest.mark.parametrize("subject", sorted(SUBJECTS))
def test_each_attempt_fails_where_nothing_holds_it(bare, subject):
    assert bare[subject].level == "FAIL"
    assert "do not grade the work of strangers" in bare[subject].advice


def test_what_got_out_is_named(bare):
    assert "READ" in bare["hidden files"].found
    assert "it reached TCP" in bare["network"].found
    assert "signals arrived" in bare["signals"].found
    assert "mode DONE" in bare["same user"].found
    assert "left running" in bare["outliving"].found
    assert bare["fork bomb"].found == "8 processes, and 2 are allowed"
