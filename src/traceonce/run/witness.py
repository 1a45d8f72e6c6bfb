"""The witness: a process beside the program that hears what happens in it, and reports when it ends.

It lives in a session of its own, so that whatever ends the program (an exception, Ctrl-C, a signal, the kernel for want
of memory) does not end the report.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from traceonce.run.page import page
from traceonce.run.report import Heard, Report
from traceonce.run.text import text

if TYPE_CHECKING:
    from traceonce.run.start import Request

_SAMPLE = 0.25
_CHUNK = 1 << 16


def main(request: Request, program: int, hear: int, done: int) -> None:
    """Be the witness. Does not return."""
    status = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)  # a reader of the program's output must see its end when the program ends
        heard = Heard(tuple(request.command), os.getcwd())
        finish(request, listen(heard, program, hear))
        status = 0
    finally:
        os._exit(status)


def listen(heard: Heard, program: int, hear: int) -> Report:
    """Take in messages until the program says that it ends, or is gone."""
    handle = _handle(program)
    watched = [hear] if handle is None else [hear, handle]
    os.set_blocking(hear, False)
    began, rest = time.perf_counter(), b""
    while not heard.ended:
        ready, _, _ = select.select(watched, [], [], _SAMPLE)
        heard.sample(_peak(program))
        data = _read(hear)
        *lines, rest = (rest + (data or b"")).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):  # what a program writes to a descriptor that is not its own
                heard.take(json.loads(line))
        if handle is not None and handle in ready and not data:
            break
        if data == b"" and hear in watched:
            # The program's end of the pipe is closed: it is gone, or it closed what it did not open and goes on.
            if handle is None:
                break
            watched.remove(hear)
    return heard.report(time.perf_counter() - began)


def _read(hear: int) -> bytes | None:
    """Return what is there; `b""` at the end, `None` where there is nothing now."""
    try:
        return os.read(hear, _CHUNK)
    except BlockingIOError:
        return None


def _handle(program: int) -> int | None:
    """A descriptor that becomes readable when the program ends, where the system has such a thing."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(program)
    except OSError:
        return None


def _peak(program: int) -> int | None:
    """The most memory that the program has held until now, in bytes; `None` where the system does not tell."""
    try:
        status = Path(f"/proc/{program}/status").read_text()
    except OSError:
        return None
    match = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def finish(request: Request, report: Report) -> None:
    """Print the table, and write the files that were asked for."""
    lines = [text(report)]
    for path, content in ((request.html, page), (request.json, lambda it: it.as_json() + "\n")):
        if path is not None:
            lines.append(_written(path, content(report)))
    # Standard error may be a terminal that is gone; then there is nobody to tell.
    with contextlib.suppress(OSError):
        _print("\n".join(lines) + "\n")


def _written(path: Path, content: str) -> str:
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as part:
            part.write(content)
        os.chmod(part.name, 0o666 & ~_umask())
        os.replace(part.name, path)
    except OSError as error:
        return f"report: {path} could not be written: {error.strerror}"
    return f"report: wrote {path}"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _print(message: str) -> None:
    data = message.encode(errors="backslashreplace")
    while data:
        data = data[os.write(2, data) :]
