"""A running sandbox as its supervisor holds it."""

import os
import select
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from traceonce.errors import TraceOnceError, UsageError
from traceonce.sandbox.watch import memory_mb, peak_mb

NAMESPACES = "namespaces"
BUBBLEWRAP = "bubblewrap"
LANDLOCK = "landlock"

TIERS = (NAMESPACES, BUBBLEWRAP, LANDLOCK)
"""The isolation that there is, strongest first. A weaker one is taken only where it is asked for by name."""

_NEEDS = {
    NAMESPACES: "it needs Linux 5.14 or newer with user namespaces (as an ordinary user: sysctl user.max_user_namespaces above 0, "
    "and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0; in a container: start it with --privileged). "
    f"Where that cannot be had, --isolation {BUBBLEWRAP} is as strong and slower, and {LANDLOCK} is weaker; docs/grading.md says by what.",
    BUBBLEWRAP: "it needs bubblewrap 0.8 or newer that is not setuid and may make namespaces, Linux 5.14 or newer, and Python and the environment where "
    "everybody may read them.",
    LANDLOCK: "it needs Linux 6.12 or newer with Landlock switched on (the file /sys/kernel/security/lsm names it), and Python and the "
    "environment where everybody may read them.",
}


def refuse_unknown_tier(tier: str) -> None:
    """**Raises**: `UsageError` for an isolation that there is not."""
    if tier not in TIERS:
        raise UsageError(f"There is no isolation {tier!r}: choose from {', '.join(TIERS)}.")


class SandboxRefused(TraceOnceError):
    """The machine does not allow the isolation that was asked for. Nothing weaker is taken in its place."""

    def __init__(self, reason: str, tier: str = NAMESPACES) -> None:
        super().__init__(f"The sandbox cannot be built here ({reason}), so nothing was graded: {_NEEDS[tier]}")


@dataclass
class Sandbox:
    """One sandboxed submission, from its start to its death.

    **Arguments**

    - `notice`: the supervisor's end of the datagram socket that `fork_sandboxed` reports on.
    - `cpu_seconds`: processor time that the sandbox used; known once it has ended.
    """

    notice: socket.socket
    tier: str = NAMESPACES
    cpu_seconds: float = 0.0
    _init: int = -1
    _pid: int = -1
    _status: int | None = None
    _lost: bool = False
    _closed: bool = field(default=False, repr=False)

    def wait_until_started(self, seconds: float) -> None:
        """Wait for the sandbox to exist.

        **Raises**: `SandboxRefused` where the kernel refused a step, or where nothing was heard for `seconds`.
        """
        self.notice.settimeout(seconds)
        try:
            message, descriptors, _, _ = socket.recv_fds(self.notice, 1024, 1)
        except TimeoutError:
            raise SandboxRefused(f"it did not start in {seconds:g} s", self.tier) from None
        if message != b"init" or not descriptors:
            raise SandboxRefused(
                message.decode(errors="replace").removeprefix("failed ") or "it ended at once", self.tier
            )
        self._init = descriptors[0]
        self._pid = _pid_of(self._init)

    def memory_mb(self, limit_mb: float) -> float:
        """MB that all its processes hold; see `watch.memory_mb`."""
        return memory_mb(self._pid, limit_mb) if self._pid > 0 else 0.0

    def peak_mb(self) -> float:
        """MB that its processes have held at most; see `watch.peak_mb`."""
        return peak_mb(self._pid) if self._pid > 0 else 0.0

    def wait_status(self, seconds: float = 0.0) -> int | None:
        """How the child ended, as `os.waitpid` gives it; `None` while it runs, or where it was killed from outside."""
        if self._status is None and not self._lost and select.select([self.notice], [], [], seconds)[0]:
            message = self.notice.recv(1024)
            if message.startswith(b"end "):
                status, used = message.removeprefix(b"end ").split()
                self._status, self.cpu_seconds = int(status), float(used)
            elif message.startswith(b"failed "):
                raise SandboxRefused(message.decode(errors="replace").removeprefix("failed "), self.tier)
            else:
                self._lost = True
        return self._status

    def kill(self) -> None:
        """End every process of the sandbox, at once and for certain, and let go of it."""
        if self._closed:
            return
        self._closed = True
        if self._init >= 0:
            # The first is the one that cleans up: where there is no process namespace, what the second leaves would stay.
            for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._init, number)
                # A pidfd turns readable when the process has ended; an init ends after all in its namespace have.
                if select.select([self._init], [], [], patience)[0]:
                    break
            os.close(self._init)
            self.wait_status()
        self.notice.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _pid_of(pidfd: int) -> int:
    """The process id behind a descriptor, as this process numbers it; -1 where it has ended."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    return -1
