"""Places: the compile cache, the progress file, the desk, and what grading needs of the kernel."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from traceonce.doctor.findings import Finding
from traceonce.doctor.machine import Machine
from traceonce.doctor.memory import GIB, size

_NAMESPACE_SECONDS = 20.0
_NAMESPACE_PROBE = "from traceonce.sandbox.namespaces import enter; enter(); print('entered')"
_REFUSALS = (
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        1,
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("/proc/sys/kernel/unprivileged_userns_clone", 0, "sysctl kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", 0, "sysctl user.max_user_namespaces=10000"),
)


def compile_cache(machine: Machine) -> Iterator[Finding]:
    """The folder of the persistent compilation cache: set or not, how big, and older than jaxlib or not."""
    setting = machine.environ.get("JAX_COMPILATION_CACHE_DIR", "")
    if not setting:
        found = "JAX_COMPILATION_CACHE_DIR is not set: each process compiles for itself, unless a program sets it"
        yield Finding("OK", "compile cache", found)
        return
    if "://" in setting:
        yield Finding("OK", "compile cache", f"{setting} is not a folder of this machine; not looked at")
        return
    if machine.environ.get("JAX_ENABLE_COMPILATION_CACHE", "").lower() in ("0", "false", "f", "n", "no", "off"):
        found = f"{setting} is set, and JAX_ENABLE_COMPILATION_CACHE turns it off"
        yield Finding("WARN", "compile cache", found, "unset one of the two.")
        return
    folder = machine.path(Path(machine.here, setting))
    if not folder.exists():
        if _can_make(folder):
            yield Finding("OK", "compile cache", f"{setting} does not exist yet; JAX makes it")
        else:
            yield Finding("WARN", "compile cache", f"{setting} cannot be made", "name a folder that you may write to.")
        return
    yield from _cache_folder(machine, setting, folder)


def _cache_folder(machine: Machine, setting: str, folder: Path) -> Iterator[Finding]:
    sizes, times = [], []
    for path in folder.rglob("*"):
        try:
            about = path.stat()
        except OSError:
            continue  # another process has just evicted it
        if stat.S_ISREG(about.st_mode) and not path.name.endswith("-atime"):
            sizes.append(about.st_size)
            times.append(datetime.fromtimestamp(about.st_mtime, UTC))
    found = f"{setting}: {len(sizes)} entr{'y' if len(sizes) == 1 else 'ies'}, {size(sum(sizes))}"
    if times:
        found += f", the oldest {_age(machine.now, min(times))} old, the newest {_age(machine.now, max(times))}"
    if not os.access(folder, os.W_OK):
        yield Finding("WARN", "compile cache", f"{found}; not writable", "name a folder that you may write to.")
    elif folder.stat().st_mode & stat.S_IWOTH:
        found += "; anybody on this machine may write to it, and JAX runs what it finds there"
        yield Finding("WARN", "compile cache", found, f"chmod o-w {setting}, or name a folder of your own.")
    else:
        jaxlib = machine.installed("jaxlib")
        since = jaxlib.installed_at if jaxlib is not None else None
        stale = sum(when < since for when in times) if since is not None else 0
        if stale:
            found += f"; {stale} older than the installed jaxlib, which will not use them unless it is the same version"
            yield Finding(
                "WARN",
                "compile cache",
                found,
                "empty the folder after an upgrade, and first of all when a run crashes.",
            )
        else:
            yield Finding("OK", "compile cache", found)


def _age(now: datetime, then: datetime) -> str:
    seconds = max(0.0, (now - then).total_seconds())
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"


def _can_make(path: Path) -> bool:
    """Whether `path` could be made: the nearest folder above it that exists is writable."""
    for parent in path.parents:
        if parent.exists():
            return parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    return False


def progress_file(machine: Machine) -> Iterator[Finding]:
    """Whether predictions can be recorded."""
    named = machine.environ.get("TRACEONCE_PROGRESS", "")
    if named:
        path = machine.path(Path(machine.here, Path(named).expanduser()))
    else:
        from platformdirs import user_data_path

        path = machine.path(user_data_path("traceonce", appauthor=False) / "progress.json")
    folder = path.parent
    writable = os.access(folder, os.W_OK | os.X_OK) if folder.exists() else _can_make(folder / "any")
    writable = writable and (not path.exists() or (path.is_file() and os.access(path, os.R_OK | os.W_OK)))
    if writable:
        yield Finding(
            "OK", "progress", f"{path} {'is there' if path.exists() else 'is made with the first prediction'}"
        )
    else:
        advice = "lessons run all the same; to keep a record set TRACEONCE_PROGRESS to a file that you may write."
        yield Finding("WARN", "progress", f"{path} cannot be written", advice)


def desk(machine: Machine) -> Iterator[Finding]:
    """Whether `make learn` can lay out the desk in the folder that the command was given in."""
    here = machine.path(machine.here)
    if not (here / "course").is_dir():
        yield Finding("OK", "desk", f"{machine.here} is not the course's folder, so there is no desk to look at")
        return
    place = here / "work"
    if place.exists() and not place.is_dir():
        yield Finding(
            "FAIL", "desk", f"{machine.here / 'work'} is a file", "move it away, or give `learn` another --desk."
        )
        return
    if not os.access(place if place.exists() else here, os.W_OK | os.X_OK):
        found = f"{machine.here / 'work'} cannot be written"
        yield Finding("FAIL", "desk", found, "copy the course to a folder of yours, or give `learn` another --desk.")
        return
    free = shutil.disk_usage(place if place.exists() else here).free
    if free < GIB:
        yield Finding(
            "WARN",
            "desk",
            f"writable, {size(free)} of disk free",
            "free some: below 1 GiB an environment does not fit.",
        )
    else:
        yield Finding("OK", "desk", f"writable, {size(free)} of disk free")


def namespaces(machine: Machine) -> Iterator[Finding]:
    """Whether the grader's sandbox can have namespaces: it is set up for real, in a child process."""
    if machine.system != "linux":
        found = "the grader's sandbox needs Linux"
        yield Finding(
            "WARN", "grader's sandbox", found, "learn here, and grade on a Linux machine or in a Linux container."
        )
        return
    ran = machine.run([sys.executable, "-P", "-c", _NAMESPACE_PROBE], _NAMESPACE_SECONDS, machine.environ)
    if ran.code == 0 and "entered" in ran.out:
        yield Finding("OK", "grader's sandbox", "user namespaces work")
        return
    said = [line for line in ran.error.splitlines() if line.strip()]
    reason = said[-1].strip() if said else "no answer" if ran.code is None else f"exit code {ran.code}"
    remedies = [command for path, value, command in _REFUSALS if machine.read_number(path) == value]
    advice = (
        f"as root: {'; '.join(remedies)}."
        if remedies
        else (
            "in a container allow user namespaces (a seccomp profile may forbid them), or grade on a machine that has them."
        )
    )
    yield Finding("WARN", "grader's sandbox", f"user namespaces do not work: {reason}", f"only for grading: {advice}")
