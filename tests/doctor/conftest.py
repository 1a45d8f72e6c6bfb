"""A machine made of files: nothing of the real one is looked at."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from traceonce.doctor.devices import _MARK
from traceonce.doctor.machine import Installed, Machine, Ran

GIB = 2**30
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)

MEMINFO = (
    "MemTotal:       {total} kB\nMemAvailable:   {free} kB\nSwapTotal:      {swap} kB\nCommitLimit:    {limit} kB\n"
)
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max data size             {data}            unlimited            bytes     \n"
    "Max processes             {processes}                96365                processes \n"
    "Max address space         {space}            unlimited            bytes     \n"
)
CGROUP2_MOUNT = "29 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
CGROUP1_MOUNT = "35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"

HEALTHY_PROBE = {
    "backend": "cpu",
    "devices": [{"id": 0, "platform": "cpu", "kind": "cpu", "limit": None, "used": None}],
    "answer": 100.0,
    "option": True,
}


def package(name: str, version: str, *requires: str, installed_at: datetime | None = NOW - timedelta(days=10)):
    return Installed(name, version, requires, installed_at)


HEALTHY_PACKAGES = (
    package("traceonce", "0.1.0", "jax<0.13,>=0.11.2", "equinox>=0.13", "optax>=0.2.5", "ipywidgets>=8.1"),
    package("jax", "0.11.2", "jaxlib<=0.11.2,>=0.11.2", 'jaxlib==0.9; extra == "ci"'),
    package("jaxlib", "0.11.2"),
    package("equinox", "0.13.8"),
    package("optax", "0.2.8"),
    package("jupyterlab", "4.6.6"),
    package("ipywidgets", "8.1.9"),
    package("anywidget", "0.11.0"),
)


class Children:
    """Stands for child processes: answers by the first word of a command that it knows."""

    def __init__(self) -> None:
        self.answers = {
            "jax": Ran(0, f"noise\n{_MARK}{json.dumps(HEALTHY_PROBE)}\n"),
            "namespaces": Ran(0, "entered\n"),
            "--query-gpu": Ran(127, "", "No such file"),
            "--query-compute-apps": Ran(127),
        }
        self.environments: list[dict[str, str]] = []

    def __call__(self, command, seconds, environ) -> Ran:
        assert seconds > 0
        self.environments.append(dict(environ))
        words = " ".join(command)
        for key in ("namespaces", "--query-gpu", "--query-compute-apps", "jax"):
            if key in words:
                return self.answers[key]
        raise AssertionError(f"nobody expects {command}")


@pytest.fixture
def children() -> Children:
    return Children()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file of the made-up machine, by its absolute path there."""

    def write_file(absolute: str, text: str) -> Path:
        path = tmp_path / absolute.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write_file


@pytest.fixture
def healthy(tmp_path: Path, write, children: Children) -> Machine:
    kib = {"total": 16 * 2**20, "free": 12 * 2**20, "swap": 0, "limit": 8 * 2**20}
    write("/proc/meminfo", MEMINFO.format(**kib))
    write("/proc/self/limits", LIMITS.format(data="unlimited", processes="96365", space="unlimited"))
    write("/proc/self/cgroup", "0::/\n")
    write("/proc/self/mountinfo", CGROUP2_MOUNT.format(root="/"))
    write("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    write("/proc/sys/vm/overcommit_memory", "0\n")
    write(
        "/proc/pressure/memory",
        "some avg10=0.00 avg60=0.50 avg300=0 total=0\nfull avg10=0.00 avg60=0.25 avg300=0 total=0\n",
    )
    write("/proc/1/comm", "systemd\n")
    (tmp_path / "home/learner").mkdir(parents=True)
    by_name = {each.name: each for each in HEALTHY_PACKAGES}
    return Machine(
        root=tmp_path,
        environ={"TRACEONCE_PROGRESS": "/home/learner/progress.json"},
        here=Path("/home/learner"),
        python=(3, 12, 1),
        system="linux",
        packages=(tmp_path / "site-packages",),
        installed=by_name.get,
        run=children,
        now=NOW,
    )


def with_packages(machine: Machine, *packages: Installed, without: tuple[str, ...] = ()) -> Machine:
    """The same machine with some packages added or replaced, and some gone."""
    known = {each.name: each for each in (*HEALTHY_PACKAGES, *packages) if each.name not in without}
    return replace(machine, installed=known.get)


def with_environ(machine: Machine, **variables: str) -> Machine:
    return replace(machine, environ={**machine.environ, **variables})


def only(findings, subject):
    """The findings about one subject; a test that looks at none of them is a mistake."""
    chosen = [finding for finding in findings if finding.subject == subject]
    assert chosen, f"nothing was said of {subject}"
    return chosen
