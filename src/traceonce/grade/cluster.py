"""Grading on a Dask cluster: each worker grades with a sandbox of its own, and this side says who does what.

Tasks are pinned to workers that were asked first what they are made of, because Dask would give work to any worker that joins, and a
grade must not depend on where it was made. A worker that goes away is noticed here, and what it had is given to another.
"""

import hashlib
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import Client, Future, Security

from traceonce.errors import TraceOnceError
from traceonce.grade import remote
from traceonce.grade.batch import Work, hidden_file, job_of, lab_request, records_from
from traceonce.grade.cluster_address import Cluster
from traceonce.grade.record import Record
from traceonce.grade.supervisor import RUN_AGAIN, empty_result
from traceonce.sandbox.limits import Limits

CONNECT_SECONDS = 15.0
WITHOUT_WORKERS_SECONDS = 60.0
"""How long a batch waits for a worker that may be used."""

_LOOK_SECONDS = 1.0
_MOST_TRIES = 3


@contextmanager
def _connected(cluster: Cluster) -> Iterator[Client]:
    """A client of the scheduler. **Raises**: `TraceOnceError` where it cannot be reached."""
    security = Security()  # Dask's own configuration
    if cluster.ca_file is not None:
        security = Security(
            tls_ca_file=str(cluster.ca_file),
            tls_client_cert=str(cluster.certificate),
            tls_client_key=str(cluster.key),
            require_encryption=True,
        )
    if cluster.address.startswith("tls://") and not security.tls_client_cert:
        raise TraceOnceError(
            f"The scheduler at {cluster.address} cannot be reached without a certificate: give --tls-ca-file, --tls-cert and "
            "--tls-key, or set them in Dask's configuration."
        )
    try:
        client = Client(cluster.address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, TimeoutError, RuntimeError) as error:
        raise TraceOnceError(
            f"The scheduler at {cluster.address} cannot be reached ({error}): start it with `dask scheduler`, or name another."
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=5)


def grade_on_cluster(
    works: Iterable[Work],
    *,
    cluster: Cluster,
    seed: bytes,
    limits: Limits,
    root: Path,
    share_compiled: bool = True,
    tell: Callable[[str], None],
    tier: str,
) -> Generator[Record]:
    """Grade submissions on the workers of a cluster; as `batch.grade_submissions` otherwise.

    **Arguments**

    - `tell`: is given a sentence about each worker that is not used or was lost.

    **Raises**: `TraceOnceError` where the scheduler is gone, or there is no worker that may be used.
    """
    cluster.check()
    if cluster.exposed:
        tell(
            f"{cluster.address} is not encrypted: who can reach the scheduler can read the hidden asserts and answer in a "
            "worker's place. Use tls:// outside of a network that you trust."
        )
    with _connected(cluster) as client:
        setup = {
            "batch": uuid.uuid4().hex,
            "seed": hashlib.sha256(seed).hexdigest(),
            "share_compiled": share_compiled,
            "tier": tier,
        }
        dispatcher = _Dispatcher(client, setup, tell, limits, root)
        try:
            yield from records_from(dispatcher, works, seed, limits, root, tier)
        finally:
            dispatcher.close()


@dataclass
class _Task:
    """A submission on its way: what is sent, and how often it was."""

    work: Work
    lab: dict[str, Any]
    hidden: tuple[str, str | None]
    job: dict[str, Any]
    tries: int = 0

    @classmethod
    def of(cls, work: Work, limits: Limits, root: Path) -> "_Task":
        assert work.lab is not None
        lab = lab_request(work, root)
        file = hidden_file(root, work.lab.name)
        text = file.read_text("utf-8") if file.is_file() else None
        return cls(work, lab, (file.name, text), job_of(work, limits, root))


@dataclass
class _Worker:
    """A worker that is used, and what it is busy with: by the key of each future."""

    address: str
    slots: int
    flying: dict[str, tuple[_Task, Any]] = field(default_factory=dict)


class _Dispatcher:
    """The `batch.Grader` of a cluster: knows which workers may be used, gives them tasks, and notices those that go away."""

    def __init__(
        self, client: Client, setup: dict[str, Any], tell: Callable[[str], None], limits: Limits, root: Path
    ) -> None:
        self.client, self.setup, self.tell, self.limits, self.root = client, setup, tell, limits, root
        self.here = remote.facts()
        self.events: queue.SimpleQueue[tuple[str, str, Future]] = queue.SimpleQueue()
        self.workers: dict[str, _Worker] = {}
        self.asked: dict[str, Future] = {}
        self.refused: dict[str, str] = {}
        self.waiting: deque[_Task] = deque()
        self.open = 0
        self.last_look = -_LOOK_SECONDS
        self.last_usable = time.monotonic()

    def has_room(self) -> bool:
        """Whether another task would be started soon."""
        return len(self.waiting) < max(1, sum(worker.slots - len(worker.flying) for worker in self.workers.values()))

    def give(self, work: Work) -> None:
        """Take a submission on."""
        self.open += 1
        self.waiting.append(_Task.of(work, self.limits, self.root))

    def wait(self) -> Iterator[tuple[Work, dict[str, Any]]]:
        """Let a moment pass, or until something happens; results that came."""
        if time.monotonic() - self.last_look >= _LOOK_SECONDS:
            self._look()
        self._start_waiting()
        try:
            kind, name, future = self.events.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            return
        if kind == "facts":
            self._admit(name, future)
        elif kind == "opened":
            self._open(name, future)
        else:
            yield from self._finish(name, future)

    def close(self) -> None:
        """Take everything back, and end the supervisors on the workers."""
        futures = [future for worker in self.workers.values() for _, future in worker.flying.values()]
        addresses = [*self.workers, *self.asked]
        try:
            if addresses:
                self.client.run(remote.close, self.setup["batch"], workers=addresses, on_error="ignore")
            self.client.cancel([*futures, *self.asked.values()], force=True)
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            self.tell(
                f"The workers could not be told that the batch is over ({error}): their graders end by themselves."
            )

    # -- workers

    def _look(self) -> None:
        """Ask the scheduler who is there."""
        self.last_look = time.monotonic()
        try:
            there = self.client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError, RuntimeError) as error:
            raise TraceOnceError(f"The scheduler is gone ({error}): {RUN_AGAIN}") from error
        if self.client.status not in ("running", "newly-created"):
            raise TraceOnceError(f"The connection to the scheduler was lost: {RUN_AGAIN}")
        for address in [address for address in self.workers if address not in there]:
            self._lose(address)
        for address in [address for address in self.asked if address not in there]:
            self.client.cancel([self.asked.pop(address)], force=True)
        for address in there.keys() - self.workers.keys() - self.asked.keys() - self.refused.keys():
            self._ask(address, "facts", remote.facts)
        if self.workers or not self.open:
            self.last_usable = self.last_look
        elif self.last_look - self.last_usable > WITHOUT_WORKERS_SECONDS or (self.refused and not self.asked):
            silent = dict.fromkeys(self.asked, "it has not answered")
            reasons = "".join(f"\n  {address}: {why}" for address, why in (self.refused | silent).items())
            raise TraceOnceError(
                f"No worker of the cluster may be used: start some with `dask worker` in this environment.{reasons}"
            )

    def _ask(self, address: str, kind: str, function: Callable[..., Any], *arguments: Any) -> None:
        future = self.client.submit(
            function, *arguments, workers=[address], pure=False, key=f"traceonce-{kind}-{uuid.uuid4().hex}"
        )
        self.asked[address] = future
        future.add_done_callback(lambda done: self.events.put((kind, address, done)))

    def _admit(self, address: str, future: Future) -> None:
        """Compare what a worker says of itself. Secrets go only to one that grades as this machine would."""
        if not self._was_asked(address, future):
            return
        if future.status != "finished":
            self._refuse(address, f"it did not say what it is made of ({_why(future)})")
            return
        there = future.result()
        other = [
            f"{name} {there.get(name, 'none')}, and here it is {value}"
            for name, value in self.here.items()
            if there.get(name) != value
        ]
        if other:
            self._refuse(address, "it has " + "; ".join(other))
        else:
            self._ask(address, "opened", remote.open_grader, self.setup | {"workers": self._slots(address)})

    def _open(self, address: str, future: Future) -> None:
        if not self._was_asked(address, future):
            return
        trouble = future.result() if future.status == "finished" else _why(future)
        if trouble:
            self._refuse(address, str(trouble))
        else:
            self.workers[address] = _Worker(address, self._slots(address))

    def _was_asked(self, address: str, future: Future) -> bool:
        """Take an answer off the list of what was asked. False for one that was taken back before."""
        if id(self.asked.get(address)) != id(future):
            return False
        del self.asked[address]
        return True

    def _slots(self, address: str) -> int:
        about = self.client.scheduler_info(n_workers=-1)["workers"].get(address, {"nthreads": 1})
        return int(about["nthreads"])

    def _refuse(self, address: str, why: str) -> None:
        self.refused[address] = why
        self.tell(f"The worker {address} is not used: {why}")

    def _lose(self, address: str) -> None:
        """Take back what a worker had that is no more."""
        worker = self.workers.pop(address)
        self.tell(f"The worker {address} is gone; its {len(worker.flying)} submissions are given to others.")
        self.client.cancel([future for _, future in worker.flying.values()], force=True)
        self.waiting.extendleft(task for task, _ in worker.flying.values())

    # -- tasks

    def _start_waiting(self) -> None:
        for worker in self.workers.values():
            while self.waiting and len(worker.flying) < worker.slots:
                task = self.waiting.popleft()
                task.tries += 1
                key = f"traceonce-{uuid.uuid4().hex}"
                setup = self.setup | {"workers": worker.slots}
                future = self.client.submit(
                    remote.grade, setup, task.lab, task.hidden, task.job, workers=[worker.address], pure=False, key=key
                )
                worker.flying[key] = task, future
                name = f"{worker.address} {key}"
                future.add_done_callback(lambda done, name=name: self.events.put(("done", name, done)))

    def _finish(self, name: str, future: Future) -> Iterator[tuple[Work, dict[str, Any]]]:
        """A task's result; or its next try, where its worker or its supervisor came to an end."""
        address, key = name.split()
        worker = self.workers.get(address)
        if worker is None or key not in worker.flying:
            return  # taken back before
        task, _ = worker.flying.pop(key)
        answer: dict[str, Any] = future.result() if future.status == "finished" else {"lost": _why(future)}
        if "result" in answer:
            self.open -= 1
            yield task.work, answer["result"]
        elif task.tries < _MOST_TRIES:
            self.waiting.appendleft(task)
        else:
            self.open -= 1
            defect = f"{_MOST_TRIES} workers were lost while they graded it; the last: {answer['lost']}"
            yield task.work, empty_result(task.work.id, defect)


def _why(future: Future) -> str:
    """Why a future has no result."""
    return f"{future.status}: {future.exception()!r}" if future.status == "error" else str(future.status)
