"""What the tiers have in common: how a child is held, ended and reported on.

All end a sandbox by signalling "every process", which must mean those of the sandbox. So nothing here sends such a signal before a tier
has made sure of that, and has said so with `hold`.
"""

import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from traceonce.sandbox import linux
from traceonce.sandbox.limits import Limits

ADDRESS_SPACE_SLACK_MB = 256
"""MB of address space beyond the limit on memory: what is mapped and never touched."""

DATA_SLACK_MB = 128
"""MB of private memory that may be written to, beyond the limit on memory: above all the stacks of XLA's threads."""

_held = False


def hold() -> None:
    """Say that "every process" is, from here on and in all that is forked from here, those of one sandbox."""
    global _held
    _held = True


def failure(error: OSError) -> bytes:
    """What the supervisor is told of a set-up that failed."""
    return f"failed {error.strerror or error}".encode()[:500]


def exit_as_defect() -> None:
    """End a forked process that must never run on in its caller's frames; show the exception that led here, if any."""
    if sys.exc_info()[0] is not None:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


def fork_apart(be: Callable[[], object], notice: socket.socket) -> int:
    """Fork a process that is `be` and nothing else; the caller gets its id. A refusal of the kernel's is told on `notice`."""
    process = os.fork()
    if process == 0:
        try:
            be()
        except OSError as error:
            try:
                notice.send(failure(error))
            except BrokenPipeError:
                os._exit(1)  # the supervisor has ended meanwhile: that is what failed, and there is nobody to tell
        finally:
            exit_as_defect()
    return process


def guard_child(
    run: Callable[[], None], confine: Callable[[], None], notice: socket.socket, *, announce: bool = True
) -> NoReturn:
    """Fork the child that runs student code, and be what ends and reaps it: the last that a tier does.

    **Arguments**

    - `confine`: the child's last step before `run`.
    - `announce`: tell the supervisor of this process, by a `pidfd`. Then `SIGTERM` has to be blocked: a request to end waits until it can be heard.
    """
    # The child may have the same id, and must not trace or read its guard; said before the fork, so that no moment is left for it.
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    child = os.fork()
    if child == 0:
        try:
            linux.prctl(linux.PR_SET_DUMPABLE, 1)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            confine()
            notice.close()
        except OSError as error:
            notice.send(failure(error))
            os._exit(1)
        try:
            run()
        finally:
            os._exit(1)
    if announce:
        socket.send_fds(notice, [b"init"], [os.pidfd_open(os.getpid())])
    close_all_but((notice.fileno(),))
    reap(child, notice)
    os._exit(0)


def reap(child: int, notice: socket.socket) -> None:
    """Wait for the child, end whatever it leaves behind, wait for that too, and report.

    `SIGTERM` from the supervisor ends the child first. `SIGKILL` would do as well, but then the kernel throws away what the
    sandbox's processes used of the processor, and nobody could say what a submission costs.
    """
    signal.signal(signal.SIGTERM, lambda *_: end_others())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    status = None
    while status is None:
        ended, found = os.waitpid(-1, 0)
        if ended == child:
            status = found
    end_others()
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    parts = [resource.getrusage(whose) for whose in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    used = sum(part.ru_utime + part.ru_stime for part in parts)
    notice.send(f"end {status} {used:.4f}".encode())


def end_others() -> None:
    """End every process of this sandbox that the caller may signal, itself excepted: from the guard all, from the child what its code left running.

    **Raises**: `RuntimeError` outside of a sandbox, where it would end everything of the user's.
    """
    if not _held:
        raise RuntimeError("end_others is for the processes of a sandbox alone")
    with suppress(ProcessLookupError):  # there is nothing to end, or it has ended by itself, perhaps just now
        os.kill(-1, signal.SIGKILL)


@dataclass(frozen=True)
class Mapped:
    """MB that a process has mapped: its whole address space, and the data in it (what is private and may be written to)."""

    address_space: int
    data: int

    @classmethod
    def now(cls) -> "Mapped":
        """What this process has mapped."""
        pages = Path("/proc/self/statm").read_text().split()
        return cls(*(int(pages[field]) * resource.getpagesize() // 2**20 for field in (0, 5)))


def detach(keep: tuple[int, ...]) -> None:
    """Leave the grader's session, terminal and descriptors."""
    os.setsid()
    close_all_but(keep)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)


def set_rlimits(limits: Limits, *, mapped: Mapped, others: int = 0) -> None:
    """Set the limits of the kernel, for good.

    **Arguments**

    - `mapped`: what the process had mapped before student code ran.
    - `others`: processes and threads that are counted with the sandbox's own because they run as the same user.
    """
    seconds = int(limits.seconds) + 2
    for which, most in (
        (resource.RLIMIT_AS, (mapped.address_space + limits.memory_mb + ADDRESS_SPACE_SLACK_MB) * 2**20),
        (resource.RLIMIT_DATA, (mapped.data + limits.memory_mb + DATA_SLACK_MB) * 2**20),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_NPROC, limits.processes + others),
        (resource.RLIMIT_FSIZE, limits.file_mb * 2**20),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(which, (most, most))
    # A write over the file-size limit is an OSError in student code, as on a full disk, and no death by signal.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def close_all_but(keep: tuple[int, ...]) -> None:
    """Close every descriptor from 3 up that is not in `keep`."""
    start = 3
    for descriptor in sorted({number for number in keep if number > 2}):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, 1 << 20)
