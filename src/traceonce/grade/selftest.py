"""`traceonce doctor --sandbox`: starts the grader's sandbox on this machine and tries to get out of it, one way after the other.

Each attempt is a cell of code in a sandbox of its own, as a submission's would be. What it prints is compared with what may be;
where something outside can tell (a listener, a victim, the process table), that is asked as well.
"""

import ast
import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from traceonce.doctor.findings import Finding
from traceonce.grade import breakouts
from traceonce.grade.supervisor import ZYGOTE_ENVIRONMENT, Helper, start_sandbox, try_sandbox
from traceonce.grade.wire import Wire, WireError
from traceonce.sandbox.guard import ADDRESS_SPACE_SLACK_MB, DATA_SLACK_MB
from traceonce.sandbox.handle import NAMESPACES, refuse_unknown_tier
from traceonce.sandbox.limits import Limits
from traceonce.sandbox.root import SCRATCH, SHARED_MEMORY

_SECONDS = 30.0
_ADVICE = "do not grade the work of strangers here; report it with this output and the output of `uname -a`."


@dataclass
class Surroundings:
    """What lies outside of the sandbox to be reached: a secret in a file and in a process, listeners, and the limits that should hold."""

    folder: Path
    tcp: socket.socket
    local: socket.socket
    victim: "subprocess.Popen[bytes]"
    parent: "subprocess.Popen[bytes]"
    limits: Limits
    token: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def secret(self) -> Path:
        """A file with the token in it."""
        return self.folder / "secret"

    def is_untouched(self) -> bool:
        """Whether the file with the token is as it was, and alone."""
        try:
            same = self.secret.read_text() == self.token and self.secret.stat().st_mode & 0o777 == 0o600
        except FileNotFoundError:
            return False
        return same and sorted(path.name for path in self.folder.iterdir()) == ["local", "secret"]

    @property
    def mark(self) -> str:
        """A name for a process that tries to stay, which no other has."""
        return f"OUT{self.token[:8]}"


@dataclass(frozen=True)
class Attempt:
    """One way out.

    **Arguments**

    - `code`: the cell; names in capitals are filled in from the surroundings.
    - `held`: whether it was held, from what the cell printed (before the sandbox ends) and what is seen outside (after that).
    """

    subject: str
    code: str
    held: Callable[[str, Surroundings], tuple[bool, str]]


_READ_FILES = r"""
import os
tried = [SECRET, "/etc/shadow", *HOME_FILES, os.path.dirname(SECRET), f"/proc/{VICTIM}/cwd/secret", f"/proc/{PARENT}/root" + SECRET]
for path in tried:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
        print("READ", path)
    except OSError:
        print("refused", path)
"""


def _read_files(printed: str, _around: Surroundings) -> tuple[bool, str]:
    held = "READ" not in printed and printed.count("refused") == 5 + len(_home_files())
    return held, "a secret, files of the home folder, /etc/shadow: none can be opened" if held else _quote(
        printed, "READ"
    )


def _home_files() -> list[str]:
    """A few files of the one who started this. (The folder itself may be there, where Python is installed below it.)"""
    return [str(path) for path in sorted(Path.home().iterdir()) if path.is_file()][:5]


_READ_PROCESSES = r"""
import os
for pid in (1, PARENT, VICTIM):
    for name in ("environ", "mem", "maps", "fd"):
        path = f"/proc/{pid}/{name}"
        try:
            found = os.listdir(path) if name == "fd" else open(path, "rb").read(1)
            print("READ", path)
        except OSError:
            print("refused", path)
"""


def _read_processes(printed: str, _around: Surroundings) -> tuple[bool, str]:
    held = "READ" not in printed and printed.count("refused") == 12
    return held, "no other process can be looked into" if held else _quote(printed, "READ")


_REACH = (
    breakouts.NETWORK
    + r"""
for address in (LOCAL, "\0" + MARK):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(address)
            print("CONNECTED", repr(address))
        except OSError as error:
            print("refused", error.errno)
"""
)


def _reach(printed: str, around: Surroundings) -> tuple[bool, str]:
    came = [name for name, listener in (("TCP", around.tcp), ("local", around.local)) if _has_visitor(listener)]
    families = re.search(r"families \[(.*)\]", printed)
    held = not came and "CONNECTED" not in printed and families is not None and families[1] in ("", "1")
    if held:
        return True, "no listener of this machine is reached, and sockets are local ones or none"
    return False, f"it reached {', '.join(came) or _quote(printed, 'CONNECTED|families')}"


def _has_visitor(listener: socket.socket) -> bool:
    listener.settimeout(0.2)
    try:
        listener.accept()[0].close()
    except TimeoutError:
        return False
    return True


def _break_out(printed: str, _around: Surroundings) -> tuple[bool, str]:
    held = "alive" in printed and "DONE" not in printed and "RAISED" not in printed and printed.count("exec EPERM") == 3
    refused = printed.count("EPERM") + printed.count("ENOSYS")
    if held and refused > 20:
        return True, f"{refused} calls refused: namespaces, mounts, tracing, keys, other programs, higher limits"
    return False, _quote(printed, "DONE|RAISED|exec") or "the attempt did not come to its end"


_PRIVILEGES = r"""
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
print("capget", libc.syscall(125 if platform.machine() == "x86_64" else 90, header, sets))
print("sets", list(sets), "privs", libc.prctl(39, 0, 0, 0, 0), "filter", libc.prctl(21, 0, 0, 0, 0))
for call in (os.setuid, os.setgid):
    try:
        call(0)
        print("BECAME 0")
    except OSError:
        pass
"""


def _privileges(printed: str, _around: Surroundings) -> tuple[bool, str]:
    held = "sets [0, 0, 0, 0, 0, 0] privs 1 filter 2" in printed and "BECAME" not in printed
    return held, "no capabilities, none to be had, a filter on calls" if held else printed.strip()


_FORKS = r"""
import os, time
made = 0
try:
    while made < 4 * PROCESSES:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        made += 1
except OSError:
    pass
print("made", made)
"""


def _forks(printed: str, around: Surroundings) -> tuple[bool, str]:
    made = _number(printed, "made")
    return 0 < made <= around.limits.processes, f"{made} processes, and {around.limits.processes} are allowed"


_MEMORY = r"""
kept = []
try:
    while len(kept) * 16 < 4 * MEMORY:
        kept.append(bytearray(16 * 2**20))
except MemoryError:
    pass
got = len(kept) * 16
del kept
print("got", got)
"""


def _memory(printed: str, around: Surroundings) -> tuple[bool, str]:
    got, most = _number(printed, "got"), around.limits.memory_mb + DATA_SLACK_MB
    return 0 < got <= most, f"{got} MB, and a single process may have {most}"


_ADDRESS_SPACE = r"""
import mmap
kept = []
try:
    while len(kept) * 16 < 4 * MEMORY:
        kept.append(mmap.mmap(-1, 16 * 2**20, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
except (OSError, MemoryError):
    pass
print("got", len(kept) * 16)
"""


def _address_space(printed: str, around: Surroundings) -> tuple[bool, str]:
    got, most = _number(printed, "got"), around.limits.memory_mb + ADDRESS_SPACE_SLACK_MB
    return 0 < got <= most, f"{got} MB, and a single process may map {most}"


_DISK = r"""
import os
for folder, most in ((SCRATCH, SCRATCH_MB), (SHARED, SHARED_MB)):
    size = 0
    try:
        while size < 4 * most:
            with open(f"{folder}/f{size}", "wb") as file:
                file.write(b"x" * 2**20)
            size += 1
    except OSError:
        pass
    print("room", size)
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.startswith("f"):
            os.unlink(f"{folder}/{name}")
"""


def _disk(printed: str, around: Surroundings) -> tuple[bool, str]:
    sizes = [int(number) for number in re.findall(r"room (\d+)", printed)]
    held = len(sizes) == 2 and sizes[0] <= around.limits.tmp_mb and sizes[1] <= around.limits.shm_mb
    if held and sizes == [0, 0]:
        return True, "there is nowhere to write"
    return held, f"{sizes} MB of room, and {[around.limits.tmp_mb, around.limits.shm_mb]} are allowed"


_WRITE = (
    breakouts.WRITE_EVERYWHERE
    + r"""
for change in (lambda: open(SECRET, "a"), lambda: os.chmod(SECRET, 0o777), lambda: os.utime(SECRET), lambda: os.truncate(SECRET, 0)):
    try:
        change()
        print("CHANGED")
    except OSError:
        pass
"""
)


def _write(printed: str, around: Surroundings) -> tuple[bool, str]:
    found = re.search(r"written (\[.*\])", printed)
    written = set(ast.literal_eval(found[1])) if found else {"?"}
    untouched = around.is_untouched()
    held = written <= {SCRATCH, SHARED_MEMORY} and "OPENED" not in printed and "CHANGED" not in printed and untouched
    where = ", ".join(sorted(written)) or "nowhere"
    return (
        held,
        f"files can be made in {where} alone" if held else f"written: {where} {_quote(printed, 'OPENED|CHANGED')}",
    )


_SIGNALS = r"""
import os
for pid in (VICTIM, PARENT):
    for number in (9, 19, 15):
        try:
            os.kill(pid, number)
            print("SENT", number)
        except OSError:
            print("refused")
"""


def _signals(printed: str, around: Surroundings) -> tuple[bool, str]:
    dead = [process.pid for process in (around.victim, around.parent) if process.poll() is not None]
    held = not dead and "SENT" not in printed and printed.count("refused") == 6
    return held, "the grader and a victim cannot be signalled" if held else f"signals arrived; ended: {dead}"


def _same_user(printed: str, around: Surroundings) -> tuple[bool, str]:
    alive = around.victim.poll() is None
    held = "through" in printed and "DONE" not in printed and around.is_untouched() and alive
    if held:
        return True, "files and processes of the user who started the grader cannot be changed"
    return False, _quote(printed, "DONE") + ("" if alive else "; the victim was ended")


_OUTLIVE = breakouts.OUTLIVE.replace('b"OUTLIVER"', "MARK.encode()")


def _outlive(printed: str, around: Surroundings) -> tuple[bool, str]:
    if "started" not in printed:
        return False, "the attempt did not come to its end"
    left = _named(around.mark)
    return not left, "nothing is left of it" if not left else f"left running: {left}"


def _named(name: str) -> list[int]:
    """The processes of that name; those that end meanwhile are left out."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if path.read_text().strip() == name:
                found.append(int(path.parent.name))
    return found


ATTEMPTS = (
    Attempt("hidden files", _READ_FILES, _read_files),
    Attempt("other processes", _READ_PROCESSES, _read_processes),
    Attempt("writing outside", _WRITE, _write),
    Attempt("network", _REACH, _reach),
    Attempt("system calls", breakouts.BREAK_OUT, _break_out),
    Attempt("privileges", _PRIVILEGES, _privileges),
    Attempt("same user", breakouts.SAME_USER, _same_user),
    Attempt("signals", _SIGNALS, _signals),
    Attempt("fork bomb", _FORKS, _forks),
    Attempt("memory", _MEMORY, _memory),
    Attempt("address space", _ADDRESS_SPACE, _address_space),
    Attempt("disk space", _DISK, _disk),
    Attempt("outliving", _OUTLIVE, _outlive),
)


def _number(printed: str, word: str) -> int:
    found = re.search(rf"{word} (\d+)", printed)
    return int(found[1]) if found else -1


def _quote(printed: str, pattern: str) -> str:
    return "; ".join(line for line in printed.splitlines() if re.search(pattern, line))[:300] or printed.strip()[-300:]


def fill_in(code: str, around: Surroundings) -> str:
    """An attempt's code with what it is to reach."""
    known: dict[str, object] = {
        "SECRET": str(around.secret),
        "HOME_FILES": _home_files(),
        "VICTIM": around.victim.pid,
        "PARENT": around.parent.pid,
        "PORT": around.tcp.getsockname()[1],
        "LOCAL": around.local.getsockname(),
        "MARK": around.mark,
        "PROCESSES": around.limits.processes,
        "MEMORY": around.limits.memory_mb,
        "SCRATCH": SCRATCH,
        "SHARED": SHARED_MEMORY,
        "SCRATCH_MB": around.limits.tmp_mb,
        "SHARED_MB": around.limits.shm_mb,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in known.items()) + code


def examine(run: Callable[[str], str], around: Surroundings) -> Iterator[Finding]:
    """Make every attempt. `run` runs a cell, ends what it left, and gives what it printed."""
    for attempt in ATTEMPTS:
        held, found = attempt.held(run(fill_in(attempt.code, around)), around)
        yield Finding("OK", attempt.subject, found) if held else Finding("FAIL", attempt.subject, found, _ADVICE)


@contextlib.contextmanager
def surroundings(limits: Limits, parent: "subprocess.Popen[bytes]") -> Iterator[Surroundings]:
    """What is to be reached; `parent` is the process that cells are forked from."""
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="traceonce-sandbox-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        local.bind(str(folder / "local"))
        local.listen()
        code = "import time; time.sleep(600)"
        victim = subprocess.Popen([sys.executable, "-c", code], cwd=folder, env={"TOKEN": token})
        try:
            around = Surroundings(folder, tcp, local, victim, parent, limits, token)
            descriptor = os.open(around.secret, os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(token)
            yield around
        finally:
            victim.kill()
            victim.wait()


def examine_sandbox(tier: str = NAMESPACES) -> list[Finding]:
    """Try every way out of the sandbox of this machine.

    **Raises**: `SandboxRefused` where it cannot be built at all; `UsageError` for an isolation that is not there.
    """
    refuse_unknown_tier(tier)
    limits = replace(Limits(), memory_mb=512, call_seconds=_SECONDS)
    zygote = Helper("traceonce.grade.zygote", ZYGOTE_ENVIRONMENT, (tier,), tier)
    try:
        zygote.wait_until_ready()
        try_sandbox(zygote)
        with surroundings(limits, zygote.process) as around:
            return list(examine(lambda code: _run(code, zygote, limits), around))
    finally:
        zygote.end()


def _run(code: str, zygote: Helper, limits: Limits) -> str:
    """Run a cell in a sandbox, end the sandbox, and give what the cell printed (or how it came to an end)."""
    cell = {"grade_id": "attempt", "kind": "solution", "text": code}
    sandbox, end = start_sandbox(zygote, {"cells": [cell], "limits": limits.to_json()}, limits)
    deadline = time.monotonic() + 2 * _SECONDS
    with sandbox, end:
        wire = Wire(end, limits.message_mb * 2**20)
        try:
            while True:
                event, _ = wire.receive(deadline=deadline)
                if event["event"] == "ran":
                    error = event["error"]
                    return str(event["printed"]) + (f"\n{error['type_name']}: {error['message']}" if error else "")
        except WireError as error:
            return f"it came to no end: {error}"
