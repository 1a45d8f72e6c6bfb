"""The landlock tier: for machines and containers that forbid user namespaces. Weaker, and never taken unless it is asked for by name.

For each submission two processes::

    zygote ── guard (Landlock domain A) ── the child that runs student code (domain B, inside A)

Signals do not leave a domain. So the guard's "every process" is what is in A and B, and the child, in B, can neither signal the guard nor
anything outside. What the submission leaves running falls to the guard, which ends it.

There is no root of one's own, no process namespace and nowhere to write. Student code sees that files exist and how large they are; it
cannot open them. What else this tier does not stop is said in ``docs/grading.md``.

As root, student code runs as an id of its own, which owns nothing; as anybody else it runs as that user, and Landlock and the filter on
system calls are all that keep it from the user's files and processes.
"""

import os
import signal
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from traceonce.sandbox import landlock, linux, seccomp
from traceonce.sandbox.guard import Mapped, close_all_but, detach, fork_apart, guard_child, hold, set_rlimits
from traceonce.sandbox.limits import Limits
from traceonce.sandbox.namespaces import NOBODY, has_id
from traceonce.sandbox.root import environment_contents

_FIRST_ID = 1_500_000_000
_READABLE_DEVICES = ("zero", "full", "random", "urandom")


def enter(extra: Mapping[Path, Path]) -> None:
    """See that the kernel has what this tier needs; there is nothing to move into.

    **Raises**: `OSError` where it has not.
    """
    if extra:
        raise OSError("this tier can show no folder at another place than its own")
    found = landlock.abi()
    if found < landlock.NEEDED_ABI:
        raise OSError(f"Landlock has version {found} here, and {landlock.NEEDED_ABI} is needed")


def fork_sandboxed(run: Callable[[], None], *, keep: tuple[int, ...], notice: socket.socket, limits: Limits) -> int:
    """Fork a child that calls `run` with nothing but the descriptors in `keep`; as `namespaces.fork_sandboxed` otherwise."""
    zygote = os.getpid()
    # Until the guard is ready to clean up, a request to end waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    guard = fork_apart(lambda: _be_guard(run, keep, notice, limits, zygote), notice)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return guard


def _be_guard(
    run: Callable[[], None], keep: tuple[int, ...], notice: socket.socket, limits: Limits, zygote: int
) -> None:
    # Not SIGKILL: the guard has to end what is below it, which no process namespace does here.
    linux.die_with_parent(signal.SIGTERM)
    close_all_but((*keep, notice.fileno()))
    Path("/proc/self/oom_score_adj").write_text("1000")
    is_root = os.geteuid() == 0
    student = _student_id() if is_root else os.geteuid()
    # These are read here, because nothing in /proc can be read from inside a domain.
    mapped, others = Mapped.now(), _threads_of(student)
    contents = environment_contents()
    readable = (*contents.shown, *(Path("/dev", name) for name in _READABLE_DEVICES))
    if is_root:
        linux.close_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict(readable, [Path("/dev/null")])
    _see_that_signals_stay(zygote)
    hold()
    if is_root:
        os.setgroups([])
        os.setresgid(student, student, student)
        os.setresuid(student, student, student)
        linux.die_with_parent(signal.SIGTERM)  # a change of id makes the kernel forget it
    linux.clear_capabilities()
    if os.getppid() != zygote:
        os._exit(1)
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    guard_child(run, lambda: _confine((*keep, notice.fileno()), limits, mapped, others, readable), notice)


def _see_that_signals_stay(outside: int) -> None:
    """Make sure of what all the rest depends on. Asked before a change of id, which would refuse it as well.

    **Raises**: `OSError` where a signal would reach a process outside of the domain.
    """
    try:
        os.kill(outside, 0)
    except PermissionError:
        return
    raise OSError("Landlock does not keep signals within a domain here")


def _student_id() -> int:
    """An id that nobody has and that no other submission has; in a container with few ids, nobody's.

    **Raises**: `OSError` where there is no other id than root's.
    """
    own = _FIRST_ID + os.getpid()
    for number in (own, NOBODY):
        if has_id("uid", number) and has_id("gid", number):
            return number
    raise OSError("there is no other id than root's, and student code must not run as root")


def _threads_of(user: int) -> int:
    """How many threads a user has: the kernel's limit counts them all together."""
    count = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            if int(fields["Uid"].split()[0]) == user:
                count += int(fields["Threads"])
    return count


def see_that_it_can_be_read(paths: Iterable[Path]) -> None:
    """Make sure that student code can import what it may. **Raises**: `OSError` for a folder that is closed to it."""
    for path in paths:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except PermissionError as error:
            raise OSError(f"{path} cannot be read by the id that student code runs as") from error


def _confine(keep: tuple[int, ...], limits: Limits, mapped: Mapped, others: int, readable: tuple[Path, ...]) -> None:
    linux.die_with_parent()
    detach(keep)
    os.chdir("/")
    os.environ.update(HOME="/nonexistent", USER="student")
    set_rlimits(limits, mapped=mapped, others=others)
    see_that_it_can_be_read(readable)
    landlock.restrict(readable, [Path("/dev/null")])
    seccomp.install(strict=True)
