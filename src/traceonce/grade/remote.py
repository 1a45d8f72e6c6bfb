"""What runs inside a Dask worker: it starts a supervisor of its own there, and hands it what the worker is given.

A Dask worker holds threads and locks, so nothing is ever forked from it: the supervisor is executed, as on one machine, and
forks from its own zygote. Seed, hidden asserts and notebooks come with each task and go no further than to that supervisor.
Everything that crosses is text, numbers, lists and dicts; errors come back as sentences.
"""

import hashlib
import platform
import tempfile
import threading
import time
from concurrent.futures import Future
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from traceonce.grade.batch import compiled_folder
from traceonce.grade.supervised import Supervised

IDLE_SECONDS = 900.0
"""A supervisor that has had nothing to do for so long is ended: whoever wanted it may have been killed."""

_SHARED = ("grade", "sandbox", "observe")
_PACKAGES = ("jax", "jaxlib", "numpy", "equinox", "optax", "pytest", "flatbuffers", "traceonce")


def facts() -> dict[str, str]:
    """What a grade depends on besides the notebook, by the name that a person knows it by."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), "processor family": platform.machine()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found | {"grader": _grader_digest()}


def _grader_digest() -> str:
    """Of the grader's own source: two checkouts can call themselves by one version."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for folder in _SHARED for path in (package / folder).rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def open_grader(setup: dict[str, Any]) -> str:
    """Start this worker's supervisor for a batch. Empty where it stands, else a sentence that says why it does not."""
    try:
        _grader(setup)
    except _NoGrader as error:
        return str(error)
    return ""


def grade(
    setup: dict[str, Any], lab: dict[str, Any], hidden: tuple[str, str | None], job: dict[str, Any]
) -> dict[str, Any]:
    """Grade one submission: `{"result": ...}`, or `{"lost": sentence}` where the grader ended under it.

    **Arguments**

    - `setup`: names the batch, with its seed and the number of submissions at a time.
    - `lab`: the lab's digest and cells; `hidden`: the name of its file of hidden asserts and what is in it (`None` for no such file).
    - `job`: as the supervisor takes it.
    """
    try:
        grader = _grader(setup)
        return {"result": grader.grade(lab, hidden, job)}
    except _NoGrader as error:
        return {"lost": str(error)}


def close(batch: str) -> None:
    """End this worker's supervisor for a batch, and what it was doing; none is started for that batch any more.

    Dask brings this by another way than tasks, so a task that was sent before it can arrive after it.
    """
    with _lock:
        _closed.add(batch)
        grader = _graders.pop(batch, None)
    if grader is not None:
        grader.end(_BATCH_HAS_ENDED)


class _NoGrader(Exception):
    """There is no supervisor, or there is none any more."""


_lock = threading.Lock()
_graders: dict[str, "_Grader"] = {}
_closed: set[str] = set()
_BATCH_HAS_ENDED = "its batch has ended"


def _grader(setup: dict[str, Any]) -> "_Grader":
    with _lock:
        if setup["batch"] in _closed:
            raise _NoGrader(_BATCH_HAS_ENDED)
        grader = _graders.get(setup["batch"])
        if grader is None or grader.over:
            grader = _graders[setup["batch"]] = _Grader(setup)
        return grader


class _Grader:
    """A running supervisor, and the submissions that it is busy with."""

    def __init__(self, setup: dict[str, Any]) -> None:
        from distributed import get_worker

        self.batch: str = setup["batch"]
        self.waiting: dict[str, Future[dict[str, Any]]] = {}
        self.over = ""
        self.used = time.monotonic()
        self.lock = threading.Lock()
        # For this user alone, and in the worker's own folder: Dask removes what a killed worker left behind.
        self.folder = tempfile.TemporaryDirectory(prefix="hidden-", dir=get_worker().local_directory)
        compiled = compiled_folder() if setup["share_compiled"] else None
        known = {name: setup[name] for name in ("workers", "seed", "tier")}
        self.supervised = Supervised(known | {"compiled": compiled})
        first = self.supervised.answer()
        if "ready" not in first:
            self.end(first.get("fatal") or "its supervisor ended at its start")
            raise _NoGrader(self.over)
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._end_when_idle, daemon=True).start()

    def grade(self, lab: dict[str, Any], hidden: tuple[str, str | None], job: dict[str, Any]) -> dict[str, Any]:
        """The supervisor's result for a job. **Raises**: `_NoGrader` where it ended before there was one."""
        answer: Future[dict[str, Any]] = Future()
        with self.lock:
            if self.over:
                raise _NoGrader(self.over)
            self.waiting[job["id"]] = answer
            self.supervised.ask(lab, job | {"hidden": self._place(*hidden)})  # that it has ended, `_listen` hears
        return answer.result()

    def _place(self, name: str, text: str | None) -> str:
        """Where the hidden asserts lie: the judge reads them from a file."""
        if text is None:
            return str(Path(self.folder.name) / "absent" / name)
        path = Path(self.folder.name) / hashlib.sha256(text.encode()).hexdigest()[:16] / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        return str(path)

    def _listen(self) -> None:
        while answer := self.supervised.answer():
            if "fatal" in answer:
                break
            self.used = time.monotonic()
            with self.lock:
                waiting = self.waiting.pop(answer["result"]["id"])
            waiting.set_result(answer["result"])
        self.end(answer.get("fatal", "its supervisor ended early"))

    def _end_when_idle(self) -> None:
        while not self.over:
            time.sleep(IDLE_SECONDS / 10)
            if not self.waiting and time.monotonic() - self.used > IDLE_SECONDS:
                self.end("it had nothing to do")

    def end(self, why: str) -> None:
        """Kill the supervisor, and with it everything below it; whoever waits for a result is told why there is none."""
        with self.lock:
            if self.over:
                return
            self.over = why
            waiting, self.waiting = self.waiting, {}
        self.supervised.kill()
        self.folder.cleanup()
        for answer in waiting.values():
            answer.set_exception(_NoGrader(why))
