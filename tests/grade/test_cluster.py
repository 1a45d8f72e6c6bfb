"""Grading on a Dask cluster: a real scheduler and real workers on this machine, one of them killed at work."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import tinylab
from cluster import cluster

from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade import grade_paths, remote
from traceonce.grade.cluster import Cluster

COMMAND = [sys.executable, str(Path(__file__).with_name("command.py")), "grade"]
SLOW = "import time\n\ndef double(x):\n    time.sleep(1)\n    return 2 * x"
WRONG = "def double(x):\n    return 3 * x"


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def place(tmp_path):
    """A class of eight, one of them wrong and one no notebook."""
    folder = tmp_path / "class"
    folder.mkdir()
    for number in range(6):
        tinylab.write(folder, f"slow{number}", {"double": SLOW + f"  # {number}"})
    tinylab.write(folder, "wrong", {"double": WRONG})
    (folder / "broken_lab90_tiny.ipynb").write_text("this is no notebook")
    return folder


def preload(folder, name, code):
    """A file that changes what a worker is, as it sees itself."""
    path = folder / f"{name}.py"
    path.write_text(code)
    return "--preload", str(path)


# Dask runs such a file more than once.
OTHER_JAX = """
import importlib.metadata as metadata
if metadata.version.__name__ == "version":
    told = metadata.version
    metadata.version = lambda name: "0.10.0" if name == "jax" else told(name)
"""
OTHER_PYTHON = """
import platform
platform.python_version_tuple = lambda: ("3", "99", "0")
"""
BROKEN = """
from traceonce.grade import remote
def broken():
    raise RuntimeError("no facts")
remote._grader_digest = broken
"""


def test_an_interrupt_and_a_killed_worker_lose_nothing_and_grades_are_those_of_one_machine(tmp_path, place):
    seed = tmp_path / "seed"
    seed.write_text("a secret that is long enough to be one")
    with cluster(tmp_path) as made:
        made.start_worker("one")
        made.start_worker("two")
        command = [*COMMAND, str(place), "--out", str(tmp_path / "out"), "--seed-file", str(seed)]
        command += ["--scheduler", made.address]
        workers = [psutil.Process(made.processes[name].pid) for name in ("one", "two")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            wait_for(lambda: list((tmp_path / "out").glob("slow*/record.json")))
            process.send_signal(signal.SIGINT)
            assert "Stopped by SIGINT" in process.communicate(timeout=60)[1]
        assert process.returncode == 130
        wait_for(lambda: not [child for worker in workers for child in worker.children(recursive=True)])
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            victim = workers[0]
            # It is grading: below it are a supervisor, a judge with its fork, a zygote, a warden, an init and a child.
            wait_for(lambda: len(victim.children(recursive=True)) >= 7)
            below = victim.children(recursive=True)
            os.kill(victim.pid, signal.SIGKILL)
            said = process.communicate(timeout=300)[1]
        assert process.returncode == 0, said
        _, alive = psutil.wait_procs(below, timeout=30)
        assert alive == []
        assert "is gone; its 1 submissions are given to others" in said
        # The other worker's supervisor is ended with the batch.
        wait_for(lambda: not workers[1].children(recursive=True), 30)
        # So are its hidden asserts. The killed one's lie where Dask removes them when a worker starts there again.
        (left,) = tmp_path.rglob("hidden-*")
        made.start_worker("one_again")
        wait_for(lambda: not left.exists(), 30)
    here = grade_paths([place], out=tmp_path / "here", seed_file=seed, root=tinylab.COURSE)
    assert len(here) == 8
    for record in here:
        there = json.loads((tmp_path / "out" / record.submission / "record.json").read_text())
        assert (there["status"], there["score"], there["key"]) == (record.status, record.score, record.key)
        assert [(a["name"], a["outcome"], a["reason"]) for a in there["asserts"]] == [
            (a.name, a.outcome, a.reason) for a in record.asserts
        ]
        assert there["tier"] == record.tier


def test_a_task_that_comes_after_the_end_of_its_batch_starts_no_supervisor():
    setup = {"batch": "one that has ended"}
    remote.close(setup["batch"])
    assert remote.open_grader(setup) == "its batch has ended"
    assert remote.grade(setup, {}, ("hidden.py", None), {"id": "late"}) == {"lost": "its batch has ended"}


def test_a_worker_that_would_grade_otherwise_is_refused_with_the_reason(tmp_path, place):
    weaker = (
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
        "sh",
    )
    with cluster(tmp_path) as made:
        made.start_worker("other_jax", *preload(tmp_path, "jax_of_old", OTHER_JAX))
        made.start_worker("other_python", *preload(tmp_path, "python_to_come", OTHER_PYTHON))
        made.start_worker("broken", *preload(tmp_path, "broken_grader", BROKEN))
        made.start_worker("weaker", before=weaker)
        command = [*COMMAND, str(place / "wrong.ipynb"), "--out", str(tmp_path / "out"), "--scheduler", made.address]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 3
        assert f"it has jax 0.10.0, and here it is {remote.facts()['jax']}" in ran.stderr
        assert "it has Python 3.99, and here it is 3." in ran.stderr
        assert "The sandbox cannot be built here" in ran.stderr
        assert "No worker of the cluster may be used" in ran.stderr
        assert ran.stderr.count("is not used: ") == 4
        assert "RuntimeError('no facts')" in ran.stderr
        assert not (tmp_path / "out" / "wrong").exists()
        # One that may be used is, whatever the others are.
        made.start_worker("right")
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 0, ran.stderr
        assert json.loads((tmp_path / "out" / "wrong" / "record.json").read_text())["score"] == 4


def test_a_cluster_under_tls(tmp_path, place):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made_of = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made_of += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *made_of], check=True, capture_output=True)
    files = ("--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key))
    with cluster(tmp_path, files) as made:
        made.start_worker("one")
        assert made.address.startswith("tls://")
        command = [*COMMAND, str(place / "wrong.ipynb"), "--scheduler", made.address, "--out", str(tmp_path / "out")]
        without = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert without.returncode == 3
        assert "cannot be reached without a certificate" in without.stderr
        ran = subprocess.run([*command, *files], capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 0, ran.stderr


def test_no_scheduler_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("traceonce.grade.cluster.CONNECT_SECONDS", 1)
    tinylab.write(tmp_path, "one")
    with pytest.raises(TraceOnceError, match=r"tcp://127\.0\.0\.1:9 cannot be reached.*dask scheduler") as refused:
        grade_paths(
            [tmp_path / "one.ipynb"], out=tmp_path / "out", root=tinylab.COURSE, cluster=Cluster("tcp://127.0.0.1:9")
        )
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    ("address", "files", "words"),
    [
        ("127.0.0.1:8786", (), "is no scheduler"),
        ("tcp://127.0.0.1", (), "is no scheduler"),
        ("tcp://127.0.0.1:many", (), "is no scheduler"),
        ("http://127.0.0.1:8786", (), "is no scheduler"),
        ("tls://127.0.0.1:8786", ("a",), "all three"),
        ("tcp://127.0.0.1:8786", ("a", "b", "c"), "would not be encrypted"),
        ("tls://127.0.0.1:8786", ("/a", "/b", "/c"), "no file /a"),
    ],
)
def test_an_address_that_makes_no_sense_is_wrong_usage(address, files, words):
    with pytest.raises(UsageError, match=words):
        Cluster(address, *map(Path, files)).check()


@pytest.mark.parametrize(
    ("address", "exposed"),
    [
        ("tcp://127.0.0.1:1", False),
        ("tcp://[::1]:1", False),
        ("tcp://localhost:1", False),
        ("tcp://192.0.2.1:1", True),
        ("tcp://head-node:1", True),
        ("tls://head-node:1", False),
    ],
)
def test_what_others_on_the_network_could_read_is_known(address, exposed):
    assert Cluster(address).exposed is exposed
