"""A child process under a memory cap and a clock, watched from its parent: for killing a process on purpose.

    from traceonce.sandbox import run_capped

    ending = run_capped("data = [bytearray(10**7) for _ in range(1000)]", memory_mb=500, on_sample=print)
    print(ending.sentence)      # killed by the watchdog at 500 MB ...

Works on Linux and macOS: the parent reads the child's resident memory and sends it the signal that the kernel's
out-of-memory killer sends. What the child sees is the same: nothing.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import psutil

from traceonce.errors import TraceOnceError, UsageError

Kind = Literal[
    "finished",
    "raised",
    "exited",
    "memory_error",
    "resource_exhausted",
    "over_cap",
    "killed",
    "aborted",
    "crashed",
    "timeout",
]

_SAMPLE_SECONDS = 0.02
_OUTPUT_CAP = 200_000
_EXHAUSTED = "RESOURCE_EXHAUSTED"
_ABORTS = frozenset({signal.SIGABRT})


@dataclass(frozen=True)
class Sample:
    """Resident memory of the child and of all that it started: `seconds` since its start, `rss_mb` in MB."""

    seconds: float
    rss_mb: float


@dataclass(frozen=True)
class Raised:
    """One exception of a chain: the name of its class, and its text (cut to 2000 characters)."""

    type_name: str
    message: str


@dataclass(frozen=True)
class Ending:
    """How a capped process ended.

    **Arguments**

    - `kind`:

        - `finished`: it came to its end; `exited`: it ended itself with a code other than 0; `raised`: an exception.
        - `memory_error`: Python's `MemoryError`, `resource_exhausted`: XLA's, each wherever in the chain of causes it is.
        - `over_cap`: the watchdog killed it over the cap. `killed`: somebody else sent SIGKILL, as the kernel's killer does.
        - `aborted`: SIGABRT (exit code 134 in a shell), as an allocator does that cannot go on. `crashed`: another signal.
        - `timeout`: the clock ran out.

    - `returncode`: as `subprocess` gives it, negative for a signal.
    - `samples`: its memory over time. `peak_mb`: the largest of them.
    - `stdout`, `stderr`: what it had written; of each the last 200 000 bytes.
    - `raised`: the exception and its causes, outermost first; empty for other endings and other programs than Python source.
    """

    kind: Kind
    returncode: int
    samples: tuple[Sample, ...]
    peak_mb: float
    seconds: float
    cap_mb: float
    stdout: str = ""
    stderr: str = ""
    raised: tuple[Raised, ...] = ()

    @property
    def shell_code(self) -> int:
        """The exit code as a shell shows it: 137 for SIGKILL, 134 for SIGABRT."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    @property
    def sentence(self) -> str:
        """What happened, in one line."""
        about = f"after {self.seconds:.1f} s, at most {self.peak_mb:.0f} MB of resident memory seen"
        outermost = self.raised[0].type_name if self.raised else "an exception"
        words = {
            "finished": "came to its end",
            "exited": f"ended itself with exit code {self.returncode}",
            "raised": f"raised {outermost}",
            "memory_error": f"raised {outermost}: Python got no memory",
            "resource_exhausted": f"raised {outermost}: XLA got no memory (RESOURCE_EXHAUSTED)",
            "over_cap": f"was killed by the watchdog at its cap of {self.cap_mb:.0f} MB, without a word",
            "killed": "was killed with SIGKILL, and not by the watchdog",
            "aborted": "aborted itself (SIGABRT)",
            "crashed": f"was ended by signal {-self.returncode}",
            "timeout": "was killed when its time was up",
        }[self.kind]
        return f"The process {words}, {about}."


def run_capped(
    program: str | Path | Sequence[str],
    *,
    memory_mb: float,
    seconds: float = 60.0,
    how: Literal["kill", "refuse"] = "kill",
    imports: Sequence[str] = (),
    on_sample: Callable[[Sample], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ending:
    """Run a program under a memory cap and a clock.

    **Arguments**

    - `program`: Python source, the path of a script, or a command as a list of words.
    - `memory_mb`: with ``how="kill"`` the resident memory in MB (of 2**20 bytes, here and in each `Sample`), of the child and all
      that it starts together, at which the watchdog kills it. With ``how="refuse"`` (Linux, Python programs) the MB of address space that it may map beyond what it
      has after `imports`: allocations are refused instead, and the child gets the exception, or aborts.
    - `seconds`: wall time after which it is killed.
    - `imports`: modules to import before the program starts.
    - `on_sample`: called in the calling thread with each `Sample`, about 50 times a second. What it raises ends the child.
    - `environment`: variables to add to the child's.

    **Raises**: `UsageError` for a cap or a clock that is not positive, or a command with ``how="refuse"``; `TraceOnceError`
    where address space cannot be limited, or the command cannot be started. What the child does is never raised.
    """
    command = _command(program, memory_mb, seconds, how, imports)
    report_read, report_write = os.pipe()
    alive_read, alive_write = os.pipe()  # the child ends when its parent's end of this pipe is closed
    is_python = isinstance(program, str | Path)
    kept = (report_write, alive_read) if is_python else ()
    variables = os.environ | dict(environment or {})
    if is_python:
        variables |= {"TRACEONCE_CAPPED": json.dumps([report_write, alive_read])}
    try:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=variables,
                    pass_fds=kept,
                    start_new_session=True,
                )
            except OSError as error:
                raise TraceOnceError(
                    f"{command[0]} cannot be started ({error.strerror}): name another command."
                ) from error
            os.close(report_write)
            report_write = -1
            watchdog = _Watchdog(process, memory_mb if how == "kill" else float("inf"), seconds)
            with _report_of(report_read) as report:
                samples = watchdog.watch(on_sample)
            texts = (_tail(out), _tail(err))
    finally:
        for descriptor in (report_read, report_write, alive_read, alive_write):
            if descriptor >= 0:
                os.close(descriptor)
    raised = tuple(Raised(**part) for part in json.loads(report[0])) if report and report[0] else ()
    return Ending(
        kind=_kind(watchdog, process.returncode, raised, texts[1], is_python),
        returncode=process.returncode,
        samples=samples,
        peak_mb=max((sample.rss_mb for sample in samples), default=0.0),
        seconds=watchdog.lasted,
        cap_mb=memory_mb,
        stdout=texts[0],
        stderr=texts[1],
        raised=raised,
    )


def _command(
    program: str | Path | Sequence[str], memory_mb: float, seconds: float, how: str, imports: Sequence[str]
) -> list[str]:
    if not (memory_mb > 0 and seconds > 0):
        raise UsageError("The memory cap and the time must be positive numbers.")
    if how == "refuse" and not sys.platform.startswith("linux"):
        raise TraceOnceError("Address space can be limited on Linux alone: use how='kill' here.")
    if not isinstance(program, str | Path):
        if how == "refuse":
            raise UsageError("A command cannot be refused memory after its imports: give Python source, or how='kill'.")
        return list(program)
    document = {
        "source": program.read_text("utf-8") if isinstance(program, Path) else program,
        "name": str(program) if isinstance(program, Path) else "<capped program>",
        "imports": list(imports),
        "address_space_mb": memory_mb if how == "refuse" else None,
    }
    return [sys.executable, "-m", "traceonce.sandbox.capped_child", json.dumps(document)]


@dataclass
class _Watchdog:
    """Samples the child's memory, and kills it over its cap or its time."""

    process: subprocess.Popen[bytes]
    cap_mb: float
    seconds: float
    over_cap: bool = False
    out_of_time: bool = False
    lasted: float = 0.0

    def watch(self, on_sample: Callable[[Sample], None] | None) -> tuple[Sample, ...]:
        """Watch until the child has ended."""
        started = time.monotonic()
        samples: list[Sample] = []
        try:
            while not self._has_ended():
                sample = Sample(time.monotonic() - started, _resident_mb(self.process.pid))
                samples.append(sample)
                self.over_cap = sample.rss_mb > self.cap_mb
                self.out_of_time = not self.over_cap and sample.seconds > self.seconds
                if self.over_cap or self.out_of_time:
                    self._kill()
                if on_sample is not None:
                    on_sample(sample)
                if self.over_cap or self.out_of_time:
                    break
                time.sleep(_SAMPLE_SECONDS)
        finally:
            self._kill()  # whatever it started, and itself where the callback raised
            self.process.wait()
            self.lasted = time.monotonic() - started
        return tuple(samples)

    def _has_ended(self) -> bool:
        """Whether the child has ended. It is not waited for yet where that can be had: a process group whose leader is gone
        for good may lend its number to strangers, and the group is still to be killed."""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self.process.poll() is not None
        found = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is not None

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(self.process.pid, signal.SIGKILL)


def _resident_mb(pid: int) -> float:
    """Resident memory of a process and all below it, in MB; processes that end meanwhile count as nothing."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                total += member.memory_info().rss
    return total / 2**20


@contextlib.contextmanager
def _report_of(descriptor: int) -> Iterator[list[str]]:
    """Collect what the child reports of its exception, in a thread: a pipe holds only so much."""
    report: list[str] = []

    def read() -> None:
        with os.fdopen(os.dup(descriptor), "rb") as file:
            report.append(file.read().decode("utf-8", "replace"))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield report
    finally:
        reader.join()


def _tail(file: IO[bytes]) -> str:
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - _OUTPUT_CAP))
    return file.read().decode("utf-8", "replace")


def _kind(watchdog: _Watchdog, returncode: int, raised: tuple[Raised, ...], stderr: str, is_python: bool) -> Kind:
    """The kind of death. An exception's chain is looked through: wrappers hide what was raised first."""
    if watchdog.over_cap:
        return "over_cap"
    if watchdog.out_of_time:
        return "timeout"
    if returncode < 0:
        number: Any = -returncode
        return "killed" if number == signal.SIGKILL else "aborted" if number in _ABORTS else "crashed"
    if any(_EXHAUSTED in part.message for part in raised):
        return "resource_exhausted"
    if any(part.type_name in ("MemoryError", "_ArrayMemoryError") for part in raised):
        return "memory_error"
    if raised:
        return "raised"
    if not is_python and returncode != 0:  # another program tells only in words
        if _EXHAUSTED in stderr:
            return "resource_exhausted"
        if "MemoryError" in stderr:
            return "memory_error"
    return "exited" if returncode else "finished"
