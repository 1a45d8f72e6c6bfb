"""The judge's side of one submission: what the `lab` fixture does, and what happens when the child is lost."""

import hashlib
import json
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from traceonce.grade.hidden import KeyUse, Observation, Program, StudentError
from traceonce.grade.values import Decoder, Encoder, Node, NotAValue
from traceonce.grade.wire import Wire, WireClosed, WireError, WireSilent
from traceonce.sandbox.limits import Limits

_GRACE_SECONDS = 1.0
_START_SECONDS = 20.0
_LEAST_SECONDS = 1.0
# What reading an answer can raise where it has not the form that was asked for.
_NO_FORM = (NotAValue, KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)


class Uncheckable(Exception):
    """An assert could not be run, for a reason outside it."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind, self.sentence = kind, sentence


class ChildLost(Exception):
    """The child ended, fell silent or broke the protocol while it was answering. `kind` is the supervisor's finding."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind, self.sentence = kind, sentence


class Session:
    """Holds the wire to the child of one submission, and replaces both when the child is lost.

    **Arguments**

    - `wire`: the judge's end; `report`: a sequenced-packet socket to the supervisor.
    - `spec`: what the supervisor says: `seed`, `submission`, `limits`, `missing` (sentences by `grade_id`) and `absent` (the same
      by the names of the functions that those cells would define).
    """

    def __init__(self, wire: socket.socket, report: socket.socket, spec: dict[str, Any]) -> None:
        self.limits = Limits.from_json(spec["limits"])
        self.missing: dict[str, str] = spec["missing"]
        self.absent: dict[str, str] = spec["absent"]
        self._seed = bytes.fromhex(spec["seed"])
        self._submission: str = spec["submission"]
        self._report = report
        self._wire: Wire | None = Wire(wire, self.limits.message_mb * 2**20)
        self._why_none = Uncheckable("crashed", "")
        self._clean: Wire | None = None
        self._slow: set[str] = set()
        self._asked: dict[str, tuple[Any, BaseException | None]] = {}

    def report(self, message: dict[str, Any]) -> None:
        """Tell the supervisor."""
        self._report.send(json.dumps(message).encode())

    def for_assert(self, name: str) -> "Lab":
        """The `lab` of one assert, with its own random numbers."""
        digest = hashlib.sha256(b"\0".join((self._seed, self._submission.encode(), name.encode()))).digest()
        return Lab(self, np.random.default_rng(list(np.frombuffer(digest, np.uint32))))

    def once(self, ask: "Callable[[Lab], Any]") -> Any:
        """What `ask` gives, or raises, for a `Lab` of its own; see `Lab.once`."""
        name = f"{ask.__module__}.{ask.__qualname__}"
        if name not in self._asked:
            try:
                self._asked[name] = ask(self.for_assert(name)), None
            except (StudentError, ChildLost, Uncheckable) as error:
                self._asked[name] = None, error
        value, raised = self._asked[name]
        if raised is not None:
            raise raised.with_traceback(None)
        return value

    # -- the child's start

    def load(self) -> None:
        """Follow the child through its cells. A cell that ends or hangs the child is left out, and a new one is started."""
        while self._wire is not None:
            try:
                self._follow(self._wire)
                return
            except _LostAt as lost:
                found = self._lose(lost.error, lost.cell)
                if lost.cell is not None and not isinstance(
                    lost.error, _Spent
                ):  # which has been reported, with its line
                    self.report({"cell": lost.cell, "error": {"kind": found.kind, "message": found.sentence}})

    def _follow(self, wire: Wire) -> None:
        cell: int | None = None
        following = 0
        while True:
            seconds = self.limits.call_seconds if cell is not None else _START_SECONDS
            try:
                event, blobs = wire.receive(deadline=time.monotonic() + seconds + _GRACE_SECONDS)
                kind = event["event"]
                if blobs:
                    raise NotAValue("blobs where none belong")
                if kind == "cell":
                    if cell is not None or event["index"] != following:
                        raise NotAValue("a cell out of turn")
                    cell, following = following, following + 1
                elif kind == "ran":
                    if cell is None or event["index"] != cell:
                        raise NotAValue("the end of another cell")
                    error_form = _checked_error(event["error"])
                    about = {"error": error_form, "printed": str(event["printed"])[:4000]}
                    self.report({"cell": cell} | about)
                    if error_form and error_form["kind"] == "memory":
                        raise _LostAt(_Spent("a cell ran out of memory"), cell)
                    cell = None
                else:
                    return
            except WireError as error:
                raise _LostAt(error, cell) from error
            except _NO_FORM as error:
                raise _LostAt(WireError("no message of a start"), cell) from error

    def _lose(self, error: WireError, cell: int | None = None) -> ChildLost:
        """Report a loss. The supervisor says what it found, and gives a new child's wire or says that there is none."""
        finding = self._exchanged({"lost": _why(error), "detail": str(error)[:200], "cell": cell})
        return ChildLost(finding["kind"], finding["sentence"])

    def _exchanged(self, message: dict[str, Any]) -> dict[str, Any]:
        """Let go of the child, and tell the supervisor so. What it found; the new child, where there is one, takes the old one's place."""
        assert self._wire is not None
        self._wire.end.close()
        self._wire = None
        self.report(message)
        reply, descriptors, _, _ = socket.recv_fds(self._report, 65536, 1)
        finding: dict[str, Any] = json.loads(reply)
        if descriptors:
            self._wire = Wire(socket.socket(fileno=descriptors[0]), self.limits.message_mb * 2**20)
        else:
            self._why_none = Uncheckable(finding["kind"], finding["final"])
        return finding

    def renew(self) -> None:
        """Replace the child by a new one, in which the cells have just run.

        **Raises**: `Uncheckable` where there is no child any more.
        """
        if self._wire is not None:
            self._exchanged({"fresh": True})
            self.load()
        if self._wire is None:
            raise self._why_none

    def peak_mb(self) -> float:
        """MB that the child has held at most, as the supervisor sees it."""
        self.report({"peak": True})
        return float(json.loads(self._report.recv(65536))["peak"])

    # -- requests

    def ask(self, request: dict[str, Any], encoder: Encoder) -> tuple[dict[str, Any], Decoder]:
        """Send a request, and return the ``ok`` part of its answer with a decoder for its values.

        **Raises**: `StudentError`, `ChildLost`, `Uncheckable`.
        """
        if self._wire is None:
            raise self._why_none
        name = request["name"]
        seconds = self.limits.call_seconds
        if name in self._slow:  # it gets another chance, and cannot use up the time of everything else
            seconds = max(_LEAST_SECONDS, seconds / 5)
        try:
            answer, decoder = self._exchange(self._wire, request, encoder.blobs, seconds)
        except WireError as error:
            if isinstance(error, WireSilent):
                self._slow.add(name)
            self._restart(error)
        try:
            error_form = _checked_error(answer.get("error"))
            if error_form is None:
                return dict(answer["ok"]), decoder
        except _NO_FORM:
            self._restart(WireError("an answer of no form"))
        if error_form["kind"] == "timeout":
            self._slow.add(name)
        if error_form["kind"] == "memory":
            self._lose(_Spent(error_form["message"]))
            self.load()
        raise _student_error(error_form)

    def ask_clean(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], Decoder]:
        """Send a request to a child that holds no student code, which is started where there is none.

        **Raises**: `StudentError` where the program cannot be carried out, `ChildLost`, `Uncheckable`.
        """
        if self._clean is None:
            self._start_clean("")
        assert self._clean is not None
        try:
            answer, decoder = self._exchange(self._clean, request, blobs, self.limits.call_seconds)
            error_form = _checked_error(answer.get("error"))
        except (WireError, NotAValue) as error:
            raise self._start_clean(_why(error)) from error
        if error_form is None:
            return dict(answer["ok"]), decoder
        if error_form["kind"] == "memory":
            self._start_clean("memory")
        raise _student_error(error_form)

    def _start_clean(self, lost: str) -> ChildLost:
        """Have the supervisor start a clean child; what it found about the one before, where that was lost."""
        if self._clean is not None:
            self._clean.end.close()
            self._clean = None
        self.report({"clean": lost})
        reply, descriptors, _, _ = socket.recv_fds(self._report, 65536, 1)
        finding = json.loads(reply)
        if not descriptors:
            raise Uncheckable(finding["kind"], finding["final"])
        self._clean = Wire(socket.socket(fileno=descriptors[0]), self.limits.message_mb * 2**20)
        try:
            self._follow(self._clean)
        except _LostAt as lost_at:
            raise Uncheckable("crashed", "The process that carries out programs did not start.") from lost_at
        return ChildLost(finding["kind"], finding["sentence"])

    def _exchange(
        self, wire: Wire, request: dict[str, Any], blobs: list[bytes], seconds: float
    ) -> tuple[dict[str, Any], Decoder]:
        """One request and its answer. **Raises**: `WireError`."""
        nonce = secrets.token_hex(8)
        deadline = time.monotonic() + seconds + _GRACE_SECONDS
        if wire.has_unread():
            raise WireError("it spoke without being asked")
        wire.send(request | {"nonce": nonce, "seconds": seconds}, blobs, deadline=deadline)
        answer, received = wire.receive(deadline=deadline)
        if not isinstance(answer, dict) or answer.get("nonce") != nonce:
            raise WireError("an answer to another question")
        return answer, Decoder(received, taken=set())

    def harvest(self) -> tuple[dict[str, bytes], frozenset[str]]:
        """What JAX compiled in a child that was told to keep it: the entries, and the names of JAX's own operations."""
        answer, decoder = self.ask({"op": "harvest", "name": ""}, Encoder())
        return dict(zip(answer["names"], decoder.blobs, strict=True)), frozenset(answer["known"])

    def broken(self) -> NoReturn:
        """Treat the last answer as a broken protocol. **Raises**: `ChildLost`."""
        self._restart(WireError("an answer of no form"))

    def _restart(self, error: WireError) -> NoReturn:
        lost = self._lose(error)
        self.load()
        raise lost


def _key_use(kind: Any, key: Any, data: Any, times: Any) -> KeyUse:
    return KeyUse(str(kind), _words(key), None if data is None else int(data), int(times))


def _words(key: Any) -> tuple[int, ...]:
    return tuple(int(word) for word in key)


def _student_error(form: dict[str, Any]) -> StudentError:
    """What an assert gets to see of a checked error form."""
    return StudentError(**form | {"bases": tuple(form["bases"])})


def _why(error: Exception) -> str:
    """What the supervisor is told of a broken connection."""
    if isinstance(error, WireClosed):
        return "closed"
    if isinstance(error, _Spent):
        return "memory"
    return "silent" if isinstance(error, WireSilent) else "garbage"


class _Spent(WireError):
    """The child says that its code ran out of memory.

    It is given up: what it still holds would be found by the watchdog a moment later, and end the next assert instead of this one.
    """


class _LostAt(Exception):
    def __init__(self, error: WireError, cell: int | None) -> None:
        super().__init__(str(error))
        self.error, self.cell = error, cell


_ERROR_KINDS = frozenset({"raised", "timeout", "memory", "value", "unknown", "skipped"})


def _checked_error(form: Any) -> dict[str, Any] | None:
    """A child's error with every part of the right type and size; `None` for none.

    **Raises**: `NotAValue` for what is no error.
    """
    if form is None:
        return None
    if not isinstance(form, dict) or form.get("kind") not in _ERROR_KINDS:
        raise NotAValue("an error of no kind")
    bases = form.get("bases", [])
    line = form.get("line", 0)
    if not isinstance(bases, list) or isinstance(line, bool) or not isinstance(line, int) or not 0 <= line < 10**6:
        raise NotAValue("an error of no form")
    texts = {name: str(form.get(name, ""))[:300] for name in ("type_name", "message", "cell")}
    return {"kind": form["kind"], "bases": [str(base)[:100] for base in bases[:20]], "line": line} | texts


@dataclass(frozen=True)
class Lab:
    """The `lab` fixture: the submission, for one hidden assert.

    **Arguments**

    - `rng`: a NumPy generator from the secret seed, the submission and the assert's name.
    """

    _session: Session
    rng: np.random.Generator

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function of the student's; the value, with arrays as NumPy.

        NumPy arrays and scalars arrive as JAX arrays (`Host` keeps them NumPy), Python numbers as they are.

        **Raises**: `StudentError` where it raised, took too long or gave something that has no form here.
        """
        answer, decoder = self._ask({"op": "call", "name": name}, args, kwargs)
        return self._decoded(decoder, answer, "value")

    def observe(
        self,
        name: str,
        *args: Any,
        jit: bool = False,
        repeat: int = 1,
        keys: bool = False,
        globals: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Observation:
        """Call a function of the student's and watch: see `Observation`.

        **Arguments**

        - `jit`: call it under `jax.jit`; `traces` and `compiles` are then those of that jit.
        - `repeat`: how many calls, each with fresh copies of the arguments.
        - `keys`: write down what is done with the typed keys in the arguments. They draw the same numbers; what is jitted is compiled anew.
        - `globals`: names of the notebook that get another value for the time of the call.

        **Raises**: `StudentError`, as `call` does.
        """
        how = {"jit": jit, "repeat": repeat, "run": True, "keys": keys}
        return self._observed(how, name, args, kwargs, globals or {})

    def trace(self, name: str, *args: Any, repeat: int = 1, **kwargs: Any) -> int:
        """How many traces `repeat` calls of a student's function take under `jax.jit`. Nothing is compiled or run.

        A fifth of what ``observe(..., jit=True)`` costs, where the values under jit are not the point.

        **Raises**: `StudentError` where it cannot be traced.
        """
        return self._observed(
            {"jit": True, "repeat": repeat, "run": False, "keys": False}, name, args, kwargs, {}
        ).traces

    def once(self, ask: "Callable[[Lab], Any]") -> Any:
        """What ``ask(lab)`` gives, asked once for a submission: for several asserts that judge the same call.

        `ask` gets a `lab` whose random numbers come from its own name. What it raised about the submission is raised for each
        assert. The value is shared, so leave it as it is.
        """
        return self._session.once(ask)

    def fresh(self) -> None:
        """Start the submission anew, in a process in which nothing but its cells has run.

        For what a process keeps: state that outlives a call, what a first call costs, a peak of memory. It takes what the cells take to
        run, and some 20 MB and 0.1 s besides; a submission gets it twenty times at most.
        """
        self._session.renew()

    def peak_mb(self) -> float:
        """MB that the submission's processes have held at most since they began, JAX and Python included. Seen from outside.

        Compare two of them, each after `fresh`. A submission can make the figure smaller, by resetting its own high-water mark.
        """
        return self._session.peak_mb()

    def export(self, name: str, *args: Any, **kwargs: Any) -> Program:
        """A function of the student's as a program, compiled and run by a process that holds no student code.

        The submission is asked for the program alone (StableHLO, as `jax.export` writes it). Its value, shapes, operations and planned
        bytes come from another sandbox, so that the submission has no say in them. Arguments are arrays, numbers and
        typed keys in dicts, lists and tuples; a `Ref` or a text is fixed in the program.

        **Raises**: `StudentError` where it cannot be traced, exported or compiled.
        """
        return self._program(name, args, kwargs, run=True)

    def plan(self, name: str, *args: Any, **kwargs: Any) -> Program:
        """`export` without running the program: its `value` is `None`."""
        return self._program(name, args, kwargs, run=False)

    def _program(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], run: bool) -> Program:
        answer, decoder = self._ask({"op": "export", "name": name}, args, kwargs)
        try:
            tree, program = decoder.decode(answer["tree"]), decoder.blobs[int(answer["program"])]
        except _NO_FORM:
            self._session.broken()
        encoder = Encoder()
        parts = {
            "args": encoder.encode(args),
            "kwargs": encoder.encode(kwargs),
            "program": len(encoder.blobs),
            "run": run,
        }
        answer, decoder = self._session.ask_clean({"op": "carry_out"} | parts, [*encoder.blobs, program])
        found = decoder.decode(answer["value"])
        return Program(
            value=_with_leaves(tree, found["leaves"]) if run else None,
            shapes=tuple(found["shapes"]),
            operations=found["operations"],
            **found["memory"],
        )

    def _observed(
        self, how: dict[str, Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], globals_: dict[str, Any]
    ) -> Observation:
        repeat = how["repeat"]
        answer, decoder = self._ask({"op": "observe", "name": name} | how, args, kwargs, globals_)
        try:
            events = {
                kind: {str(key): int(n) for key, n in answer["events"][kind].items()} for kind in ("traces", "compiles")
            }
            values = tuple(decoder.decode(form) for form in answer["values"])
            if len(values) != repeat:
                raise NotAValue("another number of values than calls")
            return Observation(
                values=values,
                arguments=tuple(decoder.decode(answer["arguments"])),
                keywords=dict(decoder.decode(answer["keywords"])),
                traces=int(answer["traces"]),
                compiles=int(answer["compiles"]),
                other_traces=events["traces"],
                other_compiles=events["compiles"],
                reads=int(answer["syncs"]["read"]),
                waits=int(answer["syncs"]["wait"]),
                keys=tuple(_key_use(*use) for use in answer["keys"]),
                reused_keys=tuple(_words(key) for key in answer["reused_keys"]),
                printed=str(answer["printed"])[:4000],
                changed_globals=tuple(str(changed) for changed in answer["changed_globals"]),
            )
        except _NO_FORM:
            self._session.broken()

    def _ask(
        self,
        request: dict[str, Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        globals_: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], Decoder]:
        encoder = Encoder()
        parts = {"args": encoder.encode(args), "kwargs": encoder.encode(kwargs)}
        if globals_ is not None:
            parts["globals"] = encoder.encode(globals_)
        return self._session.ask(request | parts, encoder)

    def _decoded(self, decoder: Decoder, answer: dict[str, Any], part: str) -> Any:
        try:
            return decoder.decode(answer[part])
        except (NotAValue, KeyError):
            self._session.broken()


def _with_leaves(tree: Any, leaves: list[Any]) -> Any:
    """A tree of numbers with the leaf of that number in each one's place.

    **Raises**: `StudentError` where a number has no leaf: the tree is what the submission said, the leaves are not.
    """
    if isinstance(tree, int) and not isinstance(tree, bool):
        if not 0 <= tree < len(leaves):
            raise StudentError("value", message="the result's structure and its leaves do not belong together")
        return leaves[tree]
    if isinstance(tree, dict):
        return {key: _with_leaves(part, leaves) for key, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_with_leaves(part, leaves) for part in tree)
    if isinstance(tree, Node):
        return Node(tree.name, {key: _with_leaves(part, leaves) for key, part in tree.fields.items()})
    return tree
