"""The one set of listeners on JAX's monitoring events, and where each event goes.

Listeners are registered while something is being watched and only then. They run on whichever thread compiles, in the
middle of JAX's own work: they read the stack, add to counts, and leave. Subscribers hear of it later, on the main thread.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Any, Literal, Protocol

import jax
from jax import monitoring

from traceonce.errors import TraceOnceError
from traceonce.observe import evidence
from traceonce.observe.calls import CallLog
from traceonce.observe.history import HISTORY, Compilation
from traceonce.observe.records import FunctionKey
from traceonce.observe.signature import signature_of

Stage = Literal["trace", "lower", "compile"]

STAGES: dict[str, Stage] = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
CACHE_HIT = "/jax/compilation_cache/cache_hits"


RawEvent = tuple[Any, ...]
"""The fields of an `Event`, in order: made into one when somebody looks."""

_MAIN = threading.main_thread().ident


class Sink(Protocol):
    """What receives events: a `Watch`."""

    def take_stage(self, running: RunningStage, raw: RawEvent) -> None: ...

    def take_call(self, raw: RawEvent) -> None: ...

    def take_inner_call(self, raw: RawEvent) -> None: ...

    def add_log(self, log: CallLog) -> None: ...

    def deliver(self) -> None: ...


class Caller(Protocol):
    """A watched function, as the listeners need it."""

    @property
    def key(self) -> FunctionKey: ...

    @property
    def seen(self) -> Sink: ...

    @property
    def jax_name(self) -> str: ...

    @property
    def jitted(self) -> bool: ...

    @property
    def wrapped(self) -> Any: ...

    def next_call(self) -> int: ...


ActiveCall = tuple[Caller, tuple[Any, ...], dict[str, Any]]
"""A call that is running on this thread: the watched function and its arguments."""


@dataclass(slots=True)
class RunningStage:
    """A trace, a lowering or a compile, from its start on.

    - `own`: whether the function is the user's, and not one of JAX's helpers.
    - `watched`: whether it runs inside a call of a watched function of this name.
    - `error`: the exception that was being handled when it began, so that one of its own can be told from it.
    """

    stage: Stage
    reported: str
    name: str
    key: FunctionKey
    own: bool
    watched: bool
    at: float
    error: BaseException | None
    compilation: Compilation
    cache_hit: bool = False


class ThreadState:
    """What is going on in one thread: watched calls, and stages that began and have not ended."""

    __slots__ = ("calls", "ended", "ident", "ignored", "making", "session", "stages")

    def __init__(self) -> None:
        self.calls: list[ActiveCall] = []
        self.stages: list[RunningStage] = []
        self.ended: list[tuple[Stage, bool, float]] = []  # stage, own, when it ended; during the calls running now
        self.making: dict[str, Compilation] = {}  # by name: traced or lowered, and not compiled yet
        self.ignored = 0  # above 0 while this package compiles something itself
        self.ident = threading.get_ident()
        self.session = 0


class _Here(threading.local):
    """Finds the state of the current thread with a single look-up."""

    def __init__(self) -> None:
        self.state = ThreadState()


HERE = _Here()


@contextmanager
def unseen() -> Iterator[None]:
    """Keep what this package compiles for itself, on this thread, out of everybody's counts."""
    state = HERE.state
    state.ignored += 1
    try:
        yield
    finally:
        state.ignored -= 1


class Monitor:
    """Holds the listeners and knows the open blocks. There is one: `MONITOR`."""

    def __init__(self) -> None:
        self.blocks: tuple[Sink, ...] = ()
        self.subscribers = 0
        self._lock = threading.RLock()
        self._users = 0
        self._session = 0  # how often the listeners were registered: what began under others never ends
        self._known: dict[str, FunctionKey] = {}
        self._filtered: dict[str, set[FunctionKey]] = {}  # by name: what was entered through eqx.filter_jit
        self._late: list[Sink] = []

    # -- who is watching

    def open_block(self, sink: Sink) -> None:
        """Send every event to `sink` until `close_block`.

        **Raises** `TraceOnceError` where this JAX has no listeners of the kind needed.
        """
        with self._lock:
            self.acquire()
            self.blocks = (*self.blocks, sink)

    def close_block(self, sink: Sink) -> None:
        """Stop sending to `sink`; the last one to leave takes the listeners along."""
        with self._lock:
            if any(block is sink for block in self.blocks):
                self.blocks = tuple(block for block in self.blocks if block is not sink)
                self.release()

    def acquire(self) -> None:
        """Register the listeners for one more user of them."""
        _require_monitoring()
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._session += 1
                monitoring.register_scalar_listener(self._on_start)
                monitoring.register_event_duration_secs_listener(self._on_end)
                monitoring.register_event_listener(self._on_event)
                # A filter and not a handler: with a handler, Python would no longer print the user's warnings itself.
                logging.getLogger(evidence.MISS_LOG).addFilter(self._on_log)

    def release(self) -> None:
        """Give up one use of the listeners; without users they are unregistered."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _unregister(monitoring.unregister_scalar_listener, self._on_start)
                _unregister(monitoring.unregister_event_duration_listener, self._on_end)
                _unregister(monitoring.unregister_event_listener, self._on_event)
                logging.getLogger(evidence.MISS_LOG).removeFilter(self._on_log)

    # -- the listeners

    def _on_start(self, event: str, _value: float, **about: Any) -> None:
        stage = STAGES.get(event)
        if stage is not None:
            state, reported = HERE.state, about.get("fun_name")
            if state.session != self._session:
                state.session = self._session
                state.stages.clear()
                state.making.clear()
            if reported is not None and not state.ignored:
                state.stages.append(self._started(state, stage, reported, sys._getframe(1)))

    def _on_event(self, event: str, **_about: Any) -> None:
        if event == CACHE_HIT and (stages := HERE.state.stages):
            stages[-1].cache_hit = True

    def _on_log(self, record: logging.LogRecord) -> bool:
        """Note what JAX logs of a cache miss, where somebody has switched that log on. Lets every record pass.

        Only of a trace that JAX also reports: under a transformation it logs traces of functions that it derived itself.
        """
        state = HERE.state
        miss = evidence.miss_of(record.getMessage()) if state.stages and not state.ignored else None
        if miss is not None:
            running = state.stages[-1]
            if running.stage == "trace" and not running.compilation.log and evidence.is_of(miss, running.key):
                running.compilation.log = miss.says
        return True

    def _on_end(self, event: str, seconds: float, **about: Any) -> None:
        stage = STAGES.get(event)
        if stage is None or (reported := about.get("fun_name")) is None:
            return
        state = HERE.state
        if state.ignored:
            return
        running, stages = None, state.stages
        while stages and running is None:  # a stage that was interrupted has a start and no end
            last = stages.pop()
            if last.stage == stage and last.reported == reported:
                running = last
        if running is None:  # watching began in the middle of this stage
            running = self._started(state, stage, reported, sys._getframe(1))
            running.at -= seconds
        error = sys.exc_info()[1]
        failed = error is not None and error is not running.error
        _advance(state, running, failed)
        raw = (stage, running.key, running.at, seconds, None, 0, 0, failed, running.cache_hit, state.ident)
        if state.calls:
            state.ended.append((stage, running.own, perf_counter()))
            for caller, _, _ in state.calls:
                caller.seen.take_stage(running, raw)
        for block in self.blocks:
            block.take_stage(running, raw)
        if stage == "compile" and (self.subscribers or self._late) and self.between_calls(state):
            self.deliver()  # nobody watches the jitted function, so this is the last that is heard of its call

    def _started(self, state: ThreadState, stage: Stage, reported: str, frame: FrameType | None) -> RunningStage:
        name = evidence.bare_name(reported)
        now, error = perf_counter(), sys.exc_info()[1]
        made = state.making.get(name)
        if made is not None and _goes_on(made, stage, frame):
            return RunningStage(stage, reported, name, made.function, made.own, made.call is not None, now, error, made)
        call, entry = None, None
        for caller, args, kwargs in reversed(state.calls) if state.calls else ():
            if caller.jitted and caller.jax_name == name:
                entry = evidence.entry_of_call(caller.wrapped, args, kwargs)
                key, call = caller.key, caller.next_call()
                break
        else:
            entry = evidence.entry_of(frame, name)
            if entry is not None:
                self._known[name] = key = evidence.key_of(entry.function)
                if entry.transform == "filter_jit":
                    self._filtered.setdefault(name, set()).add(key)
            else:
                key = self._key_without_entry(frame, name)
        if made is None or stage == "trace" or (stage == "lower" and made.lowered) or made.call != call:
            made = state.making[name] = compilation_of(key, now, call, entry)
            if made.own:
                HISTORY.add(made)
        return RunningStage(stage, reported, name, key, made.own, call is not None, now, error, made)

    def _key_without_entry(self, frame: FrameType | None, name: str) -> FunctionKey:
        """Return whose a stage is that no call on the stack belongs to, such as a backward pass."""
        source = evidence.traced_source(frame, name)
        if source is None:
            return self._known.get(name) or FunctionKey(name)
        # All programs of eqx.filter_jit come from the same line of Equinox's: the name decides, where it can.
        wrapped = self._filtered.get(name, ()) if evidence.in_equinox(source) else ()
        return next(iter(wrapped)) if len(wrapped) == 1 else source

    # -- the subscribers' turn

    def between_calls(self, state: ThreadState) -> bool:
        """Whether a thread is outside every trace, lowering, compile and call of a watched jitted function."""
        if state.stages and state.session == self._session:
            return False
        return not state.calls or not any(caller.jitted for caller, _, _ in state.calls)

    def deliver(self, *sinks: Sink) -> None:
        """Let subscribers hear what has happened, if this is the main thread."""
        state = HERE.state
        if state.ident != _MAIN:
            return
        for sink in sinks:
            sink.deliver()
        for caller, _, _ in state.calls:
            caller.seen.deliver()
        for block in self.blocks:
            block.deliver()
        while self._late:
            self._late.pop().deliver()

    def count_subscribers(self, change: int) -> None:
        """Keep the number that a watched call looks at to know whether anybody wants to hear of it."""
        with self._lock:
            self.subscribers += change

    def deliver_later(self, sink: Sink) -> None:
        """Remember a sink that was closed on another thread while its subscribers still had events to hear."""
        with self._lock:
            self._late.append(sink)


def _goes_on(made: Compilation, stage: Stage, frame: FrameType | None) -> bool:
    """Tell whether a stage carries on with the program begun by this name, or belongs to a call of its own."""
    if stage == "trace" or made.call is not None:
        return False
    if stage == "compile" and made.lowered:
        return True
    if made.signature is None or made.lowered:
        return False
    # A call lowers what it has traced. Ahead of time that can be another call, or none that the stack shows.
    return not made.signature.ahead or evidence.entered_ahead(frame) is not False


def compilation_of(key: FunctionKey, at: float, call: int | None, entry: evidence.Entry | None) -> Compilation:
    """Begin the record of a new program, with the signature of the call that wants it."""
    if call is None and evidence.is_jax(key):  # what somebody watches is theirs, also jax.jit(jnp.sin)
        return Compilation(key, 0, at, call, None, "JAX's own helpers are not looked into.", own=False)
    signature, unread = None, _OUTSIDE
    if entry is not None:
        try:
            signature, unread = signature_of(entry, key), ""
        except Exception as error:  # noqa: BLE001 - a class of the user's may fail here (__repr__, flattening); its call must not
            unread = f"the arguments could not be read: {type(error).__name__}: {error}"
    return Compilation(key, 0, at, call, signature, unread)


_OUTSIDE = "the compile happened outside of a call that can be seen: a backward pass, another thread, or ahead of time."


def _advance(state: ThreadState, running: RunningStage, failed: bool) -> None:
    """Note in the record of the program what has just been done for it."""
    made = running.compilation
    made.failed = failed
    if running.stage == "trace":
        made.traced = True
    elif running.stage == "lower":
        made.lowered = True
    else:
        made.compiled = not failed
        made.cache_hit = running.cache_hit
    if failed or running.stage == "compile":
        state.making.pop(running.name, None)


def _require_monitoring() -> None:
    if not hasattr(monitoring, "unregister_scalar_listener"):
        raise TraceOnceError(
            f"JAX {jax.__version__} does not report its traces and compiles in the way that watch() listens to: "
            "pip install --upgrade jax."
        )


def _unregister(unregister: Callable[[Any], None], listener: Any) -> None:
    try:
        unregister(listener)
    except (AssertionError, ValueError):
        # Somebody called jax.monitoring.clear_event_listeners(): the listener is gone already, which is what we want.
        return


MONITOR = Monitor()
