"""The judge: holds the hidden asserts and the seed, never student code.

    python -m traceonce.grade.judge DESCRIPTOR

It imports pytest and NumPy once and reads each file of hidden asserts once, then forks one judge for each packet on
`DESCRIPTOR`, which brings the judge's end of the wire and a report socket. A judge asks the child, decides, and reports every
assert to the supervisor as soon as it is decided.
"""

import gc
import json
import os
import re
import select
import signal
import socket
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from traceonce.grade.compiled import Compiled, functions_of, is_shareable
from traceonce.grade.hidden import StudentError
from traceonce.grade.session import ChildLost, Session, Uncheckable
from traceonce.sandbox import linux

# Half of what pytest costs a judge is plugins that have nothing to do here.
_NOT_NEEDED = (
    "cacheprovider",
    "capture",
    "debugging",
    "doctest",
    "faulthandler",
    "junitxml",
    "logging",
    "pastebin",
    "recwarn",
    "setuponly",
    "setupplan",
    "stepwise",
    "subtests",
    "terminal",
    "terminalprogress",
    "threadexception",
    "unittest",
    "unraisableexception",
    "warnings",
)
_PYTEST_OPTIONS = (
    *("-c", os.devnull, "--import-mode=importlib"),
    *(option for plugin in _NOT_NEEDED for option in ("-p", f"no:{plugin}")),
)
_NOTE_CAP = 2000


class _Plugin:
    """Runs the hidden asserts of one lab in one judge, and reports each."""

    def __init__(self, session: Session | None) -> None:
        self.session = session
        self.collection_error = ""
        self.titles: dict[str, str] = {}
        self.passed: set[str] = set()
        self.not_passed: set[str] = set()  # a parametrized assert can be in both

    @pytest.fixture
    def lab(self, request: pytest.FixtureRequest) -> Any:
        """The submission, as hidden asserts see it."""
        assert self.session is not None
        return self.session.for_assert(request.node.name)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.collection_error = str(report.longrepr)[-_NOTE_CAP:]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if not hasattr(getattr(item, "function", None), "__graded__"):
                self.collection_error = f"{item.name} has no @graded(points=..., task=..., title=..., hint=...)"
                continue
            for needed in item.function.__graded__.needs:  # type: ignore[attr-defined]
                if needed not in self.titles:
                    self.collection_error = f"{item.name} needs {needed}, which does not stand before it"
            self.titles[_name(item)] = item.function.__graded__.title  # type: ignore[attr-defined]
        if self.session is not None:
            self.session.report({"planned": [_description(item) for item in items]})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        assert self.session is not None
        sentence = self.session.missing.get(item.function.__graded__.task)  # type: ignore[attr-defined]
        if sentence:
            raise Uncheckable("missing", sentence)
        for needed in item.function.__graded__.needs:  # type: ignore[attr-defined]
            if needed not in self.passed - self.not_passed:
                raise Uncheckable("needs", f"Not checked: it needs another one to pass first, “{self.titles[needed]}”.")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        assert self.session is not None
        raised = call.excinfo.value if call.excinfo else None
        # A test reports three times (setup, call, teardown): its outcome is its call's, or what went wrong before or after.
        if raised is not None or call.when == "call":
            self.session.report({"assert": _name(item)} | _outcome(raised, self.session.absent))
            (self.passed if raised is None else self.not_passed).add(_name(item))
        return report


def _name(item: pytest.Item) -> str:
    """An assert's name, the same for all cases of a parametrized one."""
    return str(getattr(item, "originalname", None) or item.name)


def _description(item: pytest.Item) -> dict[str, Any]:
    record = item.function.__graded__  # type: ignore[attr-defined]
    description: dict[str, Any] = {"name": _name(item)} | vars(record)
    del description["needs"]
    return description


_NOT_DEFINED = re.compile("name '(?P<name>\\w+)' is not defined")


def _outcome(raised: BaseException | None, absent: dict[str, str]) -> dict[str, Any]:
    """What an assert's exception means: `passed`, `failed`, or `unchecked` with a reason.

    `absent` has a sentence for each name whose cell could not be taken from the notebook: what needs it cannot be checked.
    """
    if raised is None:
        return {"outcome": "passed"}
    if isinstance(raised, Uncheckable):
        return {"outcome": "unchecked", "why": raised.kind, "reason": raised.sentence}
    if isinstance(raised, ChildLost):
        return {"outcome": "failed", "why": raised.kind, "reason": raised.sentence}
    if isinstance(raised, StudentError):
        gone = _NOT_DEFINED.match(raised.message)
        if gone and gone["name"] in absent:
            return {"outcome": "unchecked", "why": "missing", "reason": absent[gone["name"]]}
        student = {name: getattr(raised, name) for name in ("kind", "type_name", "message", "cell", "line")}
        return {"outcome": "failed", "why": raised.kind, "student": student}
    if isinstance(raised, pytest.skip.Exception):
        return {"outcome": "unchecked", "why": "skipped", "reason": "It was skipped."}
    # For the teacher's record alone: the text may hold expected values.
    note = f"{type(raised).__name__}: {raised}"[:_NOTE_CAP]
    return {"outcome": "failed", "why": "assert", "note": note}


def _collect(hidden: str) -> str:
    """Read a file of hidden asserts: warms pytest up, and keeps the rewritten module in memory for every fork.

    Returns what is wrong with the file; empty where nothing is.
    """
    if not Path(hidden).is_file():
        return f"There are no hidden asserts at {hidden}: write them, or name another lab."
    plugin = _Plugin(None)
    status = _run_pytest(["--collect-only", hidden], plugin)
    gc.collect()
    gc.freeze()
    if plugin.collection_error or status != pytest.ExitCode.OK:
        reason = plugin.collection_error or f"pytest ended with {pytest.ExitCode(status).name}"
        return f"The hidden asserts in {Path(hidden).name} cannot be used: {reason}"
    return ""


def judge(wire: socket.socket, report: socket.socket, spec: dict[str, Any]) -> None:
    """Judge one submission and report."""
    session = Session(wire, report, spec)
    session.load()
    plugin = _Plugin(session)
    status = _run_pytest([spec["hidden"]], plugin)
    defect = plugin.collection_error
    if not defect and status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        defect = f"pytest ended with {pytest.ExitCode(status).name}"
    if spec["fill"] and not defect:
        _share_compiled(session, spec["fill"])
    session.report({"done": True, "defect": defect})


def _share_compiled(session: Session, fill: dict[str, Any]) -> None:
    """Keep what the reference had compiled, as far as it may be shared."""
    entries, known = session.harvest()
    own = functions_of(fill["solutions"])
    public = known | functions_of(fill["given"])
    shared = {name: content for name, content in entries.items() if is_shareable(name, own, public)}
    Compiled(Path(fill["folder"])).add(fill["lab"], shared)


def _run_pytest(arguments: list[str], plugin: _Plugin) -> int:
    folder = str(Path(arguments[-1]).parent)
    return int(pytest.main([*_PYTEST_OPTIONS, "--rootdir", folder, "--confcutdir", folder, *arguments], [plugin]))


def main() -> None:
    """Read the hidden asserts once, then fork a judge on request until the supervisor is gone."""
    parent = os.getppid()
    linux.die_with_parent()
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    control.send(b"ready")
    _fork_on_request(control)


def _fork_on_request(control: socket.socket) -> None:
    judges: dict[int, int] = {}  # by pidfd, which turns readable when the judge ends
    defects: dict[str, str] = {}
    while True:
        ready, _, _ = select.select([control.fileno(), *judges], [], [])
        for ended in judges.keys() & set(ready):
            os.waitpid(judges.pop(ended), 0)
            os.close(ended)
        if control.fileno() not in ready:
            continue
        packet, descriptors, _, _ = socket.recv_fds(control, 65536, 8)
        if not packet:
            break
        wire, report = (socket.socket(fileno=descriptor) for descriptor in descriptors)
        spec = json.loads(packet)
        if spec["hidden"] not in defects:
            defects[spec["hidden"]] = _collect(spec["hidden"])
        if defects[spec["hidden"]]:
            report.send(json.dumps({"done": True, "defect": defects[spec["hidden"]]}).encode())
            wire.close()
            report.close()
            continue
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                control.close()
                linux.die_with_parent()
                socket.send_fds(report, [b'{"judge": true}'], [os.pidfd_open(os.getpid())])
                judge(wire, report, spec)
                status = 0
            finally:
                if status:
                    sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
                os._exit(status)
        judges[os.pidfd_open(pid)] = pid
        wire.close()
        report.close()
    for pid in judges.values():
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
