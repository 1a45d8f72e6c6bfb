"""The bubblewrap tier: for machines that let the program ``bwrap`` make namespaces and no other, as an AppArmor profile does.

What is held is held by the same means as in the namespaces tier: user, mount, process, network, IPC and host-name namespaces, a read-only root, sized places to
write to, the same limits and the same filter. Only who sets it up is another. `bwrap` starts programs and forks nothing that is already running, so that each
submission has a Python of its own, which imports JAX anew::

    zygote ── bwrap ── init (process 1, Python with everything imported) ── the child that runs student code

`bwrap` cannot limit how many files a place holds; the init looks, and ends a submission that makes too many.
"""

import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from traceonce.sandbox import linux
from traceonce.sandbox.guard import close_all_but, end_others, fork_apart, guard_child, hold
from traceonce.sandbox.limits import Limits
from traceonce.sandbox.namespaces import NOBODY, STUDENT, confine, has_id
from traceonce.sandbox.root import DEVICES, PASSWD, SCRATCH, SHARED_MEMORY, environment_contents

_OLDEST_LINUX = (5, 14)  # the first that counts the processes of a user namespace by themselves
_MOST_FILES = 4096
_LOOK_SECONDS = 0.05
_PYTHON = (sys.executable, "-P", "-s", "-B")
_TRIAL_SECONDS = 60.0
_PROGRAMS = "/usr/bin:/bin:/usr/local/bin"  # where an administrator puts it: the grader's helpers get no PATH


def enter(extra: Mapping[Path, Path]) -> None:
    """See that ``bwrap`` can do here what this tier needs.

    **Raises**: `OSError` with what it said where it cannot.
    """
    if extra:
        raise OSError("this tier shows no other folders than Python's")
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    if release < _OLDEST_LINUX:
        raise OSError(f"this is Linux {platform.release()}, which counts a sandbox's processes with its user's others")
    user = _student_id()
    with _bwrap(Limits()) as (command, passwd):
        done = subprocess.run(
            [*command, "--", *_PYTHON, "-c", f"import {__name__}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=[passwd],
            timeout=_TRIAL_SECONDS,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    if done.returncode != 0:
        raise OSError((done.stderr.strip().splitlines() or ["bwrap failed without a word"])[-1])


def _student_id() -> int | None:
    """The id that ``bwrap`` is run as: `None` for the one that this is, because that is not root's.

    **Raises**: `OSError` where there is no other than root's.
    """
    if os.geteuid() != 0:
        return None
    if not (has_id("uid", NOBODY) and has_id("gid", NOBODY)):
        raise OSError("there is no other id than root's, and student code must not run as root")
    return NOBODY


@contextlib.contextmanager
def _bwrap(limits: Limits) -> Iterator[tuple[list[str], int]]:
    """The command that makes the sandbox, without what is run in it, and a descriptor that it is to inherit.

    **Raises**: `OSError` where there is no ``bwrap``.
    """
    program = shutil.which("bwrap", path=_PROGRAMS)
    if program is None:
        raise OSError("there is no program bwrap: install bubblewrap 0.8 or newer")
    contents, interpreter, settings = environment_contents(), Path(sys.executable), Path(sys.prefix, "pyvenv.cfg")
    # The interpreter, and what tells it that it belongs to an environment; there is no other program inside.
    shown = [*contents.shown, interpreter.resolve(), *([settings] if settings.exists() else [])]
    links = [*contents.links]
    if interpreter.resolve() != interpreter:
        links.append((interpreter, str(interpreter.resolve())))
    if not any(path.is_relative_to("/tmp") for path in shown):
        links.append((Path("/tmp"), SCRATCH))
    command = [
        program,
        "--unshare-all",
        "--die-with-parent",
        "--as-pid-1",
        "--uid",
        str(STUDENT),
        "--gid",
        str(STUDENT),
    ]
    for path in shown:
        command += ["--ro-bind", str(path), str(path)]
    for path, target in links:
        command += ["--symlink", target, str(path)]
    for name in DEVICES:
        command += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for place, megabytes in ((SCRATCH, limits.tmp_mb), (SHARED_MEMORY, limits.shm_mb)):
        command += ["--size", str(megabytes * 2**20), "--perms", "1777", "--tmpfs", place]
    passwd = os.memfd_create("passwd", 0)
    try:
        os.write(passwd, PASSWD.encode())
        os.lseek(passwd, 0, os.SEEK_SET)
        command += ["--ro-bind-data", str(passwd), "/etc/passwd"]
        command += ["--proc", "/proc", "--remount-ro", "/proc", "--remount-ro", "/", "--chdir", "/"]
        yield command, passwd
    finally:
        os.close(passwd)


@dataclass(frozen=True)
class Start:
    """What a program that `start` runs is to be told: its descriptors by number, and its limits. `text` is its one argument."""

    keep: tuple[int, ...]
    notice: int
    limits: Limits

    @property
    def text(self) -> str:
        """For `from_text`."""
        return json.dumps({"keep": self.keep, "notice": self.notice, "limits": self.limits.to_json()})

    @classmethod
    def from_text(cls, text: str) -> "Start":
        """From `text`."""
        form = json.loads(text)
        return cls(tuple(form["keep"]), form["notice"], Limits.from_json(form["limits"]))


def start(module: str, *, keep: tuple[int, ...], notice: socket.socket, limits: Limits) -> int:
    """Start ``python -m MODULE START`` in a sandbox of its own; it has to call `be_init`. Otherwise as `namespaces.fork_sandboxed`."""
    told = Start(keep, notice.fileno(), limits)
    parent = os.getpid()

    def become() -> None:
        with _bwrap(limits) as (command, passwd):
            open_ones = (*keep, notice.fileno(), passwd)
            close_all_but(open_ones)
            for descriptor in open_ones:
                os.set_inheritable(descriptor, True)
            Path("/proc/self/oom_score_adj").write_text("1000")
            if (user := _student_id()) is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            if os.getppid() == parent:
                os.execv(command[0], [*command, "--", *_PYTHON, "-m", module, told.text])

    return fork_apart(become, notice)


def be_init(run: Callable[[], None], told: Start) -> NoReturn:
    """Be process 1 of the sandbox: fork the child that calls `run`, end what it leaves, report."""
    if os.getpid() != 1:  # what follows signals "every process", and must mean those of its own namespace
        raise OSError("the process namespace is not new")
    hold()
    linux.die_with_parent()
    signal.signal(signal.SIGALRM, lambda *_: _end_a_flood_of_files())
    signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    notice = socket.socket(fileno=told.notice)
    # bwrap has emptied the bounding set, and left no privilege to do it again.
    guard_child(run, lambda: confine((*told.keep, told.notice), told.limits, linux.clear_capabilities), notice)


def _end_a_flood_of_files() -> None:
    for place in (SCRATCH, SHARED_MEMORY):
        room = os.statvfs(place)
        if room.f_files - room.f_ffree > _MOST_FILES:
            end_others()
