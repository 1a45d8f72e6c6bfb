"""Check what was asked for, start the witness, and become the program."""

from __future__ import annotations

import fcntl
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traceonce.errors import TraceOnceError, UsageError

BOOTSTRAP = Path(__file__).parent / "bootstrap"


@dataclass(frozen=True)
class Request:
    """A program to run, and where reports go besides standard error.

    **Arguments**

    - `program`: a script or a module, and its arguments.
    - `as_module`: whether the first word is a module, as after `python -m`.
    - `html`, `json`: files to write, or `None`.
    """

    program: tuple[str, ...]
    as_module: bool
    html: Path | None
    json: Path | None

    @property
    def command(self) -> list[str]:
        """What follows `python` on the command line."""
        return ["-m", *self.program] if self.as_module else list(self.program)


def run(program: Sequence[str], *, as_module: bool, html: Path | None, json_file: Path | None) -> None:
    """Run a program under the observer. Does not return: this process becomes the program.

    **Raises** `UsageError` where there is no such script or module, or no folder for a report.
    """
    request = Request(tuple(program), as_module, _report_file(html), _report_file(json_file))
    _check(request)
    report_end, program_end = _start_witness(request)
    # As `python SCRIPT` would find it: the path of the bootstrap is taken out again before the program begins.
    environ = dict(os.environ)
    before = environ.get("PYTHONPATH")
    if before is not None:
        environ["TRACEONCE_RUN_PYTHONPATH"] = before
    environ["PYTHONPATH"] = os.pathsep.join([str(BOOTSTRAP), *([before] if before else [])])
    environ["TRACEONCE_RUN"] = json.dumps({"out": report_end, "done": program_end})
    os.set_inheritable(report_end, True)
    os.set_inheritable(program_end, True)
    os.execve(sys.executable, [sys.executable, *request.command], environ)


def _report_file(path: Path | None) -> Path | None:
    if path is None:
        return None
    absolute = path.expanduser().absolute()  # the program may change its folder
    if absolute.is_dir() or not absolute.parent.is_dir():
        raise UsageError(f"A report cannot be written to {path}: name a file in a folder that exists.")
    if not os.access(absolute.parent, os.W_OK):
        raise UsageError(f"A report cannot be written to {path}: name a file in a folder that you may write to.")
    return absolute


def _check(request: Request) -> None:
    name = request.program[0]
    if request.as_module:
        if not _module_exists(name):
            raise UsageError(f"There is no module {name} in this Python: check its name, or install what holds it.")
    elif name != "-" and not Path(name).exists():
        raise UsageError(f"There is no file {name}: give the path of a Python script, or -m and the name of a module.")


def _module_exists(name: str) -> bool:
    """Look for a module as `python -m` will, without running any of its packages' code."""
    first, *rest = name.split(".")
    if not all(part.isidentifier() for part in (first, *rest)):
        return False
    path = [os.getcwd(), *sys.path]
    spec = importlib.machinery.PathFinder.find_spec(first, path) or importlib.util.find_spec(first)
    for part in rest:
        if spec is None:
            return False
        if spec.submodule_search_locations is None:
            return False
        inner = importlib.machinery.PathFinder.find_spec(part, list(spec.submodule_search_locations))
        if inner is None and not isinstance(spec.loader, importlib.machinery.SourceFileLoader | None):
            return True  # a package that is loaded in its own way: only running it can tell
        spec = inner
    return spec is not None


def _start_witness(request: Request) -> tuple[int, int]:
    """Fork the witness; return the descriptor to report to, and the one that closes when the witness has done its part.

    The witness is no child of the program, and in no session or group with it: a program that waits for its children
    finds only its own, and a signal to the program's group is the program's alone.
    """
    from traceonce.run import witness

    hear, report = map(_out_of_the_way, os.pipe())
    done, tell_done = map(_out_of_the_way, os.pipe())
    program = os.getpid()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(report)
            os.close(done)
            witness.main(request, program, hear, tell_done)
        os._exit(0)
    os.waitpid(middle, 0)
    os.close(hear)
    os.close(tell_done)
    return report, done


def _out_of_the_way(descriptor: int) -> int:
    """Give a descriptor a high number: the program may count on low ones, or have been started with a closed standard one."""
    for least in (100, 3):
        try:
            moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, least)
        except OSError:  # fewer than 100 are allowed here
            continue
        os.close(descriptor)
        return moved
    raise TraceOnceError("No file descriptor is free: close some, or raise `ulimit -n`.")
