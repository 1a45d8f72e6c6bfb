"""The judge: holds the hidden asserts and the seed, never student code.

    python -m traceonce.grade.judge DESCRIPTOR

Three generations of processes. The first imports pytest and NumPy, and forks one for each file of hidden asserts. That one collects the file, stays where
pytest would run what it collected, and forks a judge for each submission, which so begins with the first assert. A judge asks the child,
decides, and reports every assert to the supervisor as soon as it is decided.

Each packet on `DESCRIPTOR` asks for a judge; it brings the judge's end of the wire and a report socket.
"""

import contextlib
import gc
import json
import os
import re
import resource
import signal
import socket
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from traceonce.grade.compiled import Compiled, functions_of, is_shareable
from traceonce.grade.forking import serve
from traceonce.grade.hidden import StudentError
from traceonce.grade.session import ChildLost, Session, Uncheckable
from traceonce.sandbox import linux
from traceonce.sandbox.guard import Mapped

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
# What a judge may map for answers and for what an assert computes from them. An answer has `message_mb` at most.
_MEMORY_MB = 2048


class _Plugin:
    """Collects the hidden asserts of one lab; in a judge, which `control` asks for, it runs them and reports each."""

    def __init__(self, hidden: str, control: socket.socket) -> None:
        self.hidden, self.control = hidden, control
        self.session: Session | None = None
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running what was collected: fork a judge that does, for each submission."""
        for item in session.items:
            item.location  # noqa: B018 - found out once here, and not in every judge
        gc.collect()
        gc.freeze()
        defect = self.collection_error or ("" if session.items else "it holds no asserts")
        serve(self.control, lambda packet, ends: self._fork(session, packet, ends, defect))
        return True

    def _fork(self, session: pytest.Session, packet: bytes, ends: list[int], defect: str) -> int | None:
        wire, report = ends
        if defect:
            _refuse(report, f"The hidden asserts in {Path(self.hidden).name} cannot be used: {defect}")
            return None
        return _fork_apart(
            self.control,
            lambda: self._judge(session, socket.socket(fileno=wire), socket.socket(fileno=report), json.loads(packet)),
        )

    def _judge(
        self, collected: pytest.Session, wire: socket.socket, report: socket.socket, spec: dict[str, Any]
    ) -> None:
        """Judge one submission and report."""
        socket.send_fds(report, [b'{"judge": true}'], [os.pidfd_open(os.getpid())])
        most = (Mapped.now().address_space + _MEMORY_MB) * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        self.session = Session(wire, report, spec)
        self.session.report({"planned": [_description(item) for item in collected.items]})
        self.session.load()
        for item, following in zip(collected.items, [*collected.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if spec["fill"]:
            _share_compiled(self.session, spec["fill"])
        self.session.report({"done": True, "defect": ""})

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


def _share_compiled(session: Session, fill: dict[str, Any]) -> None:
    """Keep what the reference had compiled, as far as it may be shared."""
    entries, known = session.harvest()
    own = functions_of(fill["solutions"])
    public = known | functions_of(fill["given"])
    shared = {name: content for name, content in entries.items() if is_shareable(name, own, public)}
    Compiled(Path(fill["folder"])).add(fill["lab"], shared)


def _serve_file(hidden: str, control: socket.socket) -> None:
    """Be the process of one file of hidden asserts."""
    if not Path(hidden).is_file():
        defect = f"There are no hidden asserts at {hidden}: write them, or name another lab."
    else:
        folder = str(Path(hidden).parent)
        places = ("--rootdir", folder, "--confcutdir", folder)
        status = pytest.main([*_PYTEST_OPTIONS, *places, hidden], [_Plugin(hidden, control)])
        # It comes back at once where pytest itself cannot go on; otherwise nobody is left to ask for anything.
        defect = f"The hidden asserts in {Path(hidden).name} cannot be used: pytest ended with {pytest.ExitCode(status).name}"
    serve(control, lambda _packet, ends: _refuse(ends[1], defect))


def _refuse(report: int, defect: str) -> None:
    """Report that nothing can be judged, and why."""
    os.write(report, json.dumps({"done": True, "defect": defect}).encode())


def _fork_apart(control: socket.socket, be: Callable[[], None]) -> int:
    """Fork a process that is `be` and nothing else, and that ends with this one; its id."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            control.close()
            linux.die_with_parent()
            be()
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
            os._exit(status)
    return process


class _Files:
    """The processes of the files of hidden asserts, each started when it is first asked for."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.ends: dict[str, socket.socket] = {}

    def ask(self, packet: bytes, ends: list[int]) -> int | None:
        """Pass a packet on; the id of the process where it had to be started."""
        hidden = json.loads(packet)["hidden"]
        if hidden in self.ends:
            try:
                self._pass_on(hidden, packet, ends)
                return None
            except (
                BrokenPipeError,
                ConnectionResetError,
            ):  # killed, perhaps for its memory: another one can do the same
                self.ends.pop(hidden).close()
        self.ends[hidden], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def be() -> None:
            for end in self.ends.values():
                end.close()
            for descriptor in ends:
                os.close(descriptor)
            _serve_file(hidden, theirs)

        process = _fork_apart(self.control, be)
        theirs.close()
        with contextlib.suppress(
            BrokenPipeError, ConnectionResetError
        ):  # it ended at once: the supervisor sees that nobody judges
            self._pass_on(hidden, packet, ends)
        return process

    def _pass_on(self, hidden: str, packet: bytes, ends: list[int]) -> None:
        socket.send_fds(self.ends[hidden], [packet], ends)

    def close(self) -> None:
        """Let all of them finish."""
        for end in self.ends.values():
            end.close()


def main() -> None:
    """Fork judges on request until the supervisor is gone."""
    parent = os.getppid()
    linux.die_with_parent()
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    control.send(b"ready")
    files = _Files(control)
    serve(control, files.ask, files.close)


if __name__ == "__main__":
    main()
