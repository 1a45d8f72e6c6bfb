"""The supervisor: starts the zygote and the judge, owns the clocks, and says how each submission ended.

    python -m traceonce.grade.supervisor < requests > results

Plain standard library: it never imports JAX, NumPy or pytest, and no student code. Requests and results are lines of JSON, so
that the same supervisor serves one machine and a cluster. The first request is ``{"setup": ...}``; ``{"lab": ...}`` makes
a lab known; each ``{"job": ...}`` gives one ``{"result": ...}``, in any order; ``{"finish": true}`` ends it. When its input
ends without that, it kills everything that it started and leaves.
"""

import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from traceonce.errors import TraceOnceError
from traceonce.grade.compiled import Compiled
from traceonce.grade.wire import Wire, WireError
from traceonce.sandbox.handle import NAMESPACES, Sandbox, SandboxRefused
from traceonce.sandbox.limits import Limits

ZYGOTE_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    # One thread before the fork: OpenBLAS would start its pool on import.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # XLA makes its pools by the number of processors; a submission gets the same on every machine.
    "NPROC": "1",
    # A lab compiles much and computes little: a quarter less time for a compile, about the same for what it runs.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    # Half the time of a compile: XLA's older code generator makes one kernel at a time without a pass manager of its own.
    "XLA_FLAGS": "--xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters",
    # A program's text would name the Python lines that it came from, which nobody reads here.
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
    "MALLOC_ARENA_MAX": "2",
    "PYTHONHASHSEED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
JUDGE_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

RUN_AGAIN = "run the command again; finished records are kept."

_TICK_SECONDS = 0.05
# One takes 3 s where nothing else runs; more than 60 s were seen on two cores that twenty processes wanted.
_START_SECONDS = 180.0
_JUDGE_GRACE_SECONDS = 10.0
_MOST_RESTARTS = 6
_MOST_RENEWALS = 20
_MEMORY_SIGNALS = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS})


@dataclass(frozen=True)
class Finding:
    """Why a child was lost: its kind (a record's status) and a sentence for the learner."""

    kind: str
    sentence: str


@dataclass
class Result:
    """What is known of a submission; the record is made of it.

    **Arguments**

    - `planned`: the hidden asserts, in order, with their points, title and hint.
    - `outcomes`: by an assert's name, the outcome of each of its cases.
    - `cells`: by a cell's index, its error (or `None`) and what it printed.
    - `findings`: why children were lost, in order.
    - `cpu_seconds`: processor time of its sandboxes, without the judge.
    - `defect`: what is wrong with the grader or the hidden asserts, which is no fault of the submission.
    """

    id: str
    tier: str = NAMESPACES
    planned: list[dict[str, Any]] = field(default_factory=list)
    outcomes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    cells: dict[int, dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    defect: str = ""
    peak_mb: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def empty_result(submission: str, defect: str) -> dict[str, Any]:
    """The result of a submission that nothing is known of, and whose fault that is not."""
    return asdict(Result(submission, defect=defect))


class HelperGone(Exception):
    """The zygote or the judge is no more, and with it everything that it could still do."""


class Helper:
    """The zygote or the judge: a process with a packet socket, on which it says ``ready`` once."""

    def __init__(
        self, module: str, environment: dict[str, str], arguments: tuple[str, ...] = (), tier: str = NAMESPACES
    ) -> None:
        self.module, self.tier = module, tier
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = {name: value for name, value in os.environ.items() if name in ("LD_LIBRARY_PATH", "LANG", "LC_ALL")}
        command = [sys.executable, "-P", "-s", "-B", "-m", module, str(theirs.fileno()), *arguments]
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env=kept | environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()

    def wait_until_ready(self) -> None:
        """Wait for ``ready``. **Raises**: `SandboxRefused` with what it says instead."""
        self.control.settimeout(_START_SECONDS)
        try:
            message = self.control.recv(4096).decode(errors="replace")
        except TimeoutError:
            message = f"{self.module} did not start in {_START_SECONDS:g} s"
        if message != "ready":
            raise SandboxRefused(message.removeprefix("failed ") or f"{self.module} ended at its start", self.tier)
        self.control.settimeout(None)

    def send(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """Ask for a fork that gets these descriptors. **Raises**: `HelperGone`."""
        try:
            socket.send_fds(self.control, [json.dumps(message).encode()], descriptors)
        except OSError as error:
            raise HelperGone(f"{self.module} ended early") from error

    def end(self) -> None:
        """Let it finish, and wait for it, so that its use of the processor is counted."""
        self.control.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Child:
    """A sandboxed child, and whether it was ended for its memory."""

    sandbox: Sandbox
    out_of_memory: bool = False


class Run:
    """One submission: its sandboxes, its judge, and the clock over all of them.

    `student` runs the submission; `clean` (started when the judge asks for it) holds no student code and carries out programs
    that the submission was exported to.
    """

    def __init__(self, job: dict[str, Any], seed: str, zygote: Helper, judge: Helper) -> None:
        self.job, self.zygote = job, zygote
        self.limits = Limits.from_json(job["limits"])
        self.result = Result(job["id"], zygote.tier)
        self.started = time.monotonic()
        self.deadline = self.started + self.limits.seconds
        self.next_look = self.started
        self.skipped: dict[int, str] = {}
        self.restarts = 0
        self.renewals = 0
        self.judge_handle = -1
        self.out_of_time = False
        self.clean: Child | None = None
        sandbox, wire = start_sandbox(zygote, self._document(), self.limits)
        self.student = Child(sandbox)
        self.report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        spec = {name: job.get(name) for name in ("submission", "limits", "missing", "absent", "hidden", "fill")} | {
            "seed": seed
        }
        try:
            judge.send(spec, [wire.fileno(), theirs.fileno()])
        finally:
            wire.close()
            theirs.close()

    def _document(self) -> dict[str, Any]:
        cells = [cell | {"skip": self.skipped.get(index, "")} for index, cell in enumerate(self.job["cells"])]
        return {"cells": cells, "limits": self.limits.to_json(), "fill": bool(self.job.get("fill"))}

    def grade(self) -> Result:
        """Follow the judge to its end, whatever the submission does."""
        try:
            while self._step():
                pass
        finally:
            self._end(self.student)
            self._end(self.clean)
            if self.judge_handle >= 0:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self.judge_handle, signal.SIGKILL)
                os.close(self.judge_handle)
            self.report.close()
            self.result.seconds = time.monotonic() - self.started
        return self.result

    def _end(self, child: Child | None) -> None:
        if child is not None:
            child.sandbox.kill()
            self.result.cpu_seconds += child.sandbox.cpu_seconds

    def _step(self) -> bool:
        """Wait for the judge a moment, and check the limits. False at the end."""
        ready, _, _ = select.select([self.report], [], [], _TICK_SECONDS)
        now = time.monotonic()
        if not self.out_of_time and now > self.deadline:
            self.out_of_time = True
            for child in self._children():
                child.sandbox.kill()
        if now > self.deadline + _JUDGE_GRACE_SECONDS:
            self.result.defect = "the judge did not come to an end"
            return False
        if now >= self.next_look:
            # A judge speaks more often than that, and a look through /proc takes a millisecond.
            self.next_look = now + _TICK_SECONDS
            self._look_at_memory()
        return self._hear() if ready else True

    def _look_at_memory(self) -> None:
        """End a child that holds more than it may."""
        if self.out_of_time:
            return
        for child in self._children():
            if not child.out_of_memory:
                used = child.sandbox.memory_mb(self.limits.memory_mb)
                self.result.peak_mb = max(self.result.peak_mb, used)
                if used > self.limits.memory_mb:
                    child.out_of_memory = True
                    child.sandbox.kill()

    def _children(self) -> list[Child]:
        return [self.student, self.clean] if self.clean else [self.student]

    def _hear(self) -> bool:
        """Take one message of the judge. False at the end."""
        packet, descriptors, _, _ = socket.recv_fds(self.report, 1 << 20, 1)
        if not packet:
            self.result.defect = self.result.defect or "the judge ended before it was done"
            return False
        message = json.loads(packet)
        if descriptors:
            self.judge_handle = descriptors[0]
        elif "planned" in message:
            self.result.planned = message["planned"]
        elif "assert" in message:
            self.result.outcomes.setdefault(message.pop("assert"), []).append(message)
        elif "lost" in message:
            self._replace(message)
        elif "fresh" in message:
            self._renew()
        elif "peak" in message:
            self.report.send(json.dumps({"peak": self.student.sandbox.peak_mb()}).encode())
        elif "clean" in message:
            self._give_clean(message["clean"])
        elif "cell" in message:
            self._note_cell(message)
        elif "done" in message:
            self.result.defect = message["defect"]
            return False
        return True

    def _note_cell(self, message: dict[str, Any]) -> None:
        error = message["error"]
        if error is None or error["kind"] != "skipped":  # a new child skips what ended the one before: that is known
            self.result.cells[message["cell"]] = {"error": error, "printed": message.get("printed", "")}
        if error is not None and error["kind"] == "timeout":
            self.skipped[message["cell"]] = error["message"]  # should there be a new child, it need not wait again

    def _replace(self, message: dict[str, Any]) -> None:
        """Answer a judge that lost its child: what happened, and a new child where there may be one."""
        finding = self._diagnose(message["lost"], self.student)
        self._end(self.student)
        self.result.findings.append(finding)
        if message["cell"] is not None:
            self.skipped[message["cell"]] = finding.sentence
        if child := self._answer(finding, self._document()):
            self.restarts += 1
            self.student = child

    def _renew(self) -> None:
        """Give the judge a new child in place of one that did nothing wrong."""
        self._end(self.student)
        self.renewals += 1
        if child := self._answer(Finding("", ""), self._document()):
            self.student = child

    def _give_clean(self, lost: str) -> None:
        """Start a child without student code for the judge; `lost` says how it lost the one before, if it did."""
        finding = Finding("", "")
        if self.clean is not None:
            finding = self._diagnose(lost, self.clean)
            self._end(self.clean)
            self.clean = None
            self.restarts += 1
        self.clean = self._answer(finding, {"cells": [], "limits": self.limits.to_json()})

    def _answer(self, finding: Finding, document: dict[str, Any]) -> Child | None:
        """Tell the judge what was found, with the wire to a new child for this job, where there may be one."""
        final = self._why_no_more(finding)
        answer = json.dumps(asdict(finding) | {"final": final}).encode()
        if final:
            self.report.send(answer)
            return None
        sandbox, wire = start_sandbox(self.zygote, document, self.limits)
        try:
            with wire:
                socket.send_fds(self.report, [answer], [wire.fileno()])
        except OSError:
            sandbox.kill()  # nobody holds it yet
            raise
        return Child(sandbox)

    def _why_no_more(self, finding: Finding) -> str:
        """Why the submission gets no further child; empty where it gets one."""
        if self.out_of_time:
            return f"Not checked: the notebook had used up its {self.limits.seconds:g} s."
        if finding.kind == "tampering":
            return "Not checked: the notebook had interfered with the grader."
        if self.renewals > _MOST_RENEWALS:
            return f"Not checked: the hidden asserts ask for more than {_MOST_RENEWALS} fresh processes."
        if self.restarts >= _MOST_RESTARTS:
            return f"Not checked: the notebook had ended its process, or used up its memory, {self.restarts + 1} times."
        return ""

    def _diagnose(self, why: str, child: Child) -> Finding:
        """What happened to a child, from outside it."""
        limits = self.limits
        if child.out_of_memory or why == "memory":
            return Finding("memory", f"It used more than {limits.memory_mb} MB of memory.")
        if self.out_of_time:
            return Finding("timeout", f"The notebook used up its {limits.seconds:g} s.")
        if why == "silent":
            return Finding("timeout", f"It did not come to an end within {limits.call_seconds:g} s.")
        if why == "garbage":
            return Finding("tampering", "It interfered with the grader's connection.")
        status = child.sandbox.wait_status(1.0)
        if status is None:
            return Finding("crashed", "It closed the grader's connection.")
        if os.WIFEXITED(status):
            return Finding("crashed", f"It ended the Python process (exit code {os.WEXITSTATUS(status)}).")
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return Finding("timeout", f"It used {limits.seconds:g} s of processor time.")
        if number in _MEMORY_SIGNALS and self.result.peak_mb > limits.memory_mb / 2:
            return Finding("memory", f"It crashed near the limit of {limits.memory_mb} MB of memory.")
        return Finding("crashed", f"It crashed the Python process ({signal.Signals(number).name}).")


def start_sandbox(zygote: Helper, document: dict[str, Any], limits: Limits) -> tuple[Sandbox, socket.socket]:
    """Fork a sandboxed child with this job; its handle, and the judge's end of the wire.

    **Raises**: `SandboxRefused` where it does not start.
    """
    ours, childs = socket.socketpair()
    notice, childs_notice = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    job = os.memfd_create("job")
    try:
        with os.fdopen(os.dup(job), "wb") as file:
            file.write(json.dumps(document).encode())
        zygote.send(limits.to_json(), [childs.fileno(), job, childs_notice.fileno()])
    finally:
        os.close(job)
        childs.close()
        childs_notice.close()
    sandbox = Sandbox(notice, zygote.tier)
    try:
        sandbox.wait_until_started(_START_SECONDS)
    except SandboxRefused:
        sandbox.kill()
        ours.close()
        raise
    return sandbox, ours


def try_sandbox(zygote: Helper) -> None:
    """Start a sandbox without cells and hear from it. **Raises**: `SandboxRefused`."""
    limits = Limits()
    sandbox, end = start_sandbox(zygote, {"cells": [], "limits": limits.to_json()}, limits)
    with sandbox, end:
        try:
            Wire(end, 2**20).receive(deadline=time.monotonic() + _START_SECONDS)
        except WireError as error:
            status = sandbox.wait_status(1.0)  # raises with the reason where set-up failed
            raise SandboxRefused(f"its child ended with status {status}", zygote.tier) from error


class Supervisor:
    """Takes jobs from standard input and grades `workers` of them at a time.

    **Arguments**

    - `seed`: the secret, in hexadecimal.
    - `compiled`: a folder for compiled programs that submissions may share; `None` for none.
    - `tier`: the isolation, one of `sandbox.handle.TIERS`. The others show no further folder, and nothing is shared there.
    """

    def __init__(self, workers: int, seed: str, compiled: str | None, tier: str) -> None:
        self.seed = seed
        self.jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.output = threading.Lock()
        self.labs: dict[str, dict[str, Any]] = {}
        self.filling = threading.Lock()
        self.compiled = Compiled.open(Path(compiled), ZYGOTE_ENVIRONMENT) if compiled and tier == NAMESPACES else None
        # Helpers are started on the main thread: they die with the thread that started them.
        self.judge = Helper("traceonce.grade.judge", JUDGE_ENVIRONMENT)
        shown = (str(self.compiled.folder),) if self.compiled else ()
        self.zygote = Helper("traceonce.grade.zygote", ZYGOTE_ENVIRONMENT, (tier, *shown), tier)
        self.zygote.wait_until_ready()
        self.judge.wait_until_ready()
        try_sandbox(self.zygote)
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]

    def serve(self) -> None:
        """Grade until told to finish."""
        for thread in self.threads:
            thread.start()
        self.say({"ready": True})
        for line in sys.stdin:
            request = json.loads(line)
            if "finish" in request:
                break
            if "lab" in request:
                self.labs[request["lab"]["digest"]] = request["lab"]
            else:
                self.jobs.put(request["job"])
        else:
            os._exit(3)  # whoever asked is gone: the helpers and sandboxes die with this process
        for _ in self.threads:
            self.jobs.put(None)
        for thread in self.threads:
            thread.join()
        self.zygote.end()
        self.judge.end()

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            try:
                self._fill(job)
                self.say({"result": asdict(Run(job, self.seed, self.zygote, self.judge).grade())})
            except HelperGone as error:
                self.say({"fatal": f"The grader came to an end ({error}): {RUN_AGAIN}"})
                os._exit(3)  # what it started dies with it
            except (TraceOnceError, OSError) as error:
                self.say({"result": empty_result(job["id"], str(error))})

    def _fill(self, job: dict[str, Any]) -> None:
        """Run the reference of a job's lab once, and keep what was compiled for all submissions after it."""
        lab = self.labs.get(job["lab"])
        if lab is None or self.compiled is None:
            return
        with self.filling:
            if self.labs.pop(lab["digest"], None) is None or self.compiled.has(lab["digest"]):
                return
            solutions = [cell["text"] for cell in lab["cells"] if cell["kind"] == "solution"]
            given = [cell["text"] for cell in lab["cells"] if cell["kind"] != "solution"]
            place = {"folder": str(self.compiled.folder), "lab": lab["digest"]}
            fill = place | {"solutions": solutions, "given": given}
            reference = job | {
                "cells": lab["cells"],
                "missing": {},
                "absent": {},
                "fill": fill,
                "limits": Limits().to_json(),
            }
            Run(reference, self.seed, self.zygote, self.judge).grade()

    def say(self, message: dict[str, Any]) -> None:
        """Write one line for whoever asked."""
        with self.output:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()


def main() -> None:
    """Serve standard input; a sandbox that cannot be built becomes ``{"fatal": sentence}``."""
    setup = json.loads(sys.stdin.readline())["setup"]
    try:
        supervisor = Supervisor(setup["workers"], setup["seed"], setup["compiled"], setup["tier"])
    except TraceOnceError as error:
        print(json.dumps({"fatal": str(error)}), flush=True)
        sys.exit(error.exit_code)
    except OSError as error:
        print(json.dumps({"fatal": f"The grader cannot start ({error}): see docs/grading.md."}), flush=True)
        sys.exit(3)
    supervisor.serve()


if __name__ == "__main__":
    main()
