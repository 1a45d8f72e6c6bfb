"""The one set of listeners on JAX's monitoring events, and where each event goes.

Listeners are registered while something is being watched and only then. They run on whichever thread compiles, in the
middle of JAX's own work: they read the stack, add to counts, and leave. Subscribers hear of it later, on the main thread.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Any, Literal, Protocol

from jax import monitoring

from traceonce.observe import evidence
from traceonce.observe.calls import CallLog
from traceonce.observe.history import HISTORY, Compilation
from traceonce.observe.records import Event, FunctionKey
from traceonce.observe.signature import signature_of

Stage = Literal["trace", "lower", "compile"]

STAGES: dict[str, Stage] = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
CACHE_HIT = "/jax/compilation_cache/cache_hits"


class Sink(Protocol):
    """What receives events: a `Watch`."""

    def take_stage(self, stage: FinishedStage) -> None: ...

    def take_call(self, event: Event) -> None: ...

    def take_inner_call(self, event: Event) -> None: ...

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
class _StartedStage:
    stage: Stage
    reported: str
    key: FunctionKey
    watched: bool
    at: float
    error: BaseException | None
    compilation: Compilation
    cache_hit: bool = False


@dataclass(frozen=True, slots=True)
class FinishedStage:
    """A trace, a lowering or a compile that has ended."""

    stage: Stage
    key: FunctionKey
    watched: bool
    own: bool
    at: float
    seconds: float
    failed: bool
    cache_hit: bool
    thread: int
    compilation: Compilation


class _ThreadState(threading.local):
    """What is going on in one thread: watched calls, and stages that began and have not ended."""

    def __init__(self) -> None:
        self.calls: list[ActiveCall] = []
        self.stages: list[_StartedStage] = []
        self.ended: list[tuple[Stage, bool, float]] = []  # stage, own, when it ended; during the calls running now
        self.making: dict[str, Compilation] = {}  # by name: traced or lowered, and not compiled yet
        self.ignored = 0  # above 0 while this package compiles something itself
        self.ident = threading.get_ident()


HERE = _ThreadState()


@contextmanager
def unseen() -> Iterator[None]:
    """Keep what this package compiles for itself, on this thread, out of everybody's counts."""
    HERE.ignored += 1
    try:
        yield
    finally:
        HERE.ignored -= 1


class Monitor:
    """Holds the listeners and knows the open blocks. There is one: `MONITOR`."""

    def __init__(self) -> None:
        self.blocks: tuple[Sink, ...] = ()
        self.subscribers = 0
        self._lock = threading.RLock()
        self._users = 0
        self._known: dict[str, FunctionKey] = {}
        self._late: list[weakref.ref[Any]] = []

    # -- who is watching

    def open_block(self, sink: Sink) -> None:
        """Send every event to `sink` until `close_block`."""
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
        with self._lock:
            self._users += 1
            if self._users == 1:
                monitoring.register_scalar_listener(self._on_start)
                monitoring.register_event_duration_secs_listener(self._on_end)
                monitoring.register_event_listener(self._on_event)

    def release(self) -> None:
        """Give up one use of the listeners; without users they are unregistered."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _unregister(monitoring.unregister_scalar_listener, self._on_start)
                _unregister(monitoring.unregister_event_duration_listener, self._on_end)
                _unregister(monitoring.unregister_event_listener, self._on_event)

    # -- the listeners

    def _on_start(self, event: str, _value: float, **about: Any) -> None:
        stage = None if HERE.ignored else STAGES.get(event)
        if stage is not None and isinstance(reported := about.get("fun_name"), str):
            HERE.stages.append(self._started(stage, reported, sys._getframe(1)))

    def _on_event(self, event: str, **_about: Any) -> None:
        if event == CACHE_HIT and HERE.stages:
            HERE.stages[-1].cache_hit = True

    def _on_end(self, event: str, seconds: float, **about: Any) -> None:
        stage = None if HERE.ignored else STAGES.get(event)
        if stage is None or not isinstance(reported := about.get("fun_name"), str):
            return
        here, started = HERE, None
        while here.stages and started is None:  # a stage that was interrupted has a start and no end
            last = here.stages.pop()
            if (last.stage, last.reported) == (stage, reported):
                started = last
        if started is None:  # watching began in the middle of this stage
            started = self._started(stage, reported, sys._getframe(1))
            started.at -= seconds
        error = sys.exc_info()[1]
        own = not evidence.is_jax(started.key)
        finished = FinishedStage(
            stage=stage,
            key=started.key,
            watched=started.watched,
            own=own,
            at=started.at,
            seconds=seconds,
            failed=error is not None and error is not started.error,
            cache_hit=started.cache_hit,
            thread=threading.get_ident(),
            compilation=started.compilation,
        )
        _advance(started, finished)
        if here.calls:
            here.ended.append((stage, own, perf_counter()))
        for caller, _, _ in here.calls:
            caller.seen.take_stage(finished)
        for block in self.blocks:
            block.take_stage(finished)
        if stage == "compile" and self.between_calls():
            self.deliver()  # nobody watches the jitted function, so this is the last that is heard of its call

    def _started(self, stage: Stage, reported: str, frame: FrameType | None) -> _StartedStage:
        name = evidence.bare_name(reported)
        now, error = perf_counter(), sys.exc_info()[1]
        for caller, args, kwargs in reversed(HERE.calls):
            if caller.jitted and caller.jax_name == name:
                entry: evidence.Entry | None = evidence.entry_of_call(caller.wrapped, args, kwargs)
                key, call = caller.key, caller.next_call()
                break
        else:
            call, entry = None, evidence.entry_of(frame, name)
            if entry is not None:
                self._known[name] = key = evidence.key_of(entry.function)
            else:
                key = evidence.traced_source(frame, name) or self._known.get(name) or FunctionKey(name)
        made = HERE.making.get(name)
        if made is None or stage == "trace" or (stage == "lower" and made.lowered) or _another_call(made, call, entry):
            made = compilation(key, now, call, entry)
            HERE.making[name] = made
        return _StartedStage(stage, reported, key, call is not None, now, error, made)

    # -- the subscribers' turn

    def between_calls(self) -> bool:
        """Whether this thread is outside every trace, lowering, compile and call of a watched jitted function."""
        return not HERE.stages and not any(caller.jitted for caller, _, _ in HERE.calls)

    def deliver(self, *sinks: Sink) -> None:
        """Let subscribers hear what has happened, if this is the main thread."""
        if threading.get_ident() != threading.main_thread().ident:
            return
        for sink in (*sinks, *(caller.seen for caller, _, _ in HERE.calls), *self.blocks):
            sink.deliver()
        while self._late:
            left = self._late.pop()()
            if left is not None:
                left.deliver()

    def count_subscribers(self, change: int) -> None:
        """Keep the number that a watched call looks at to know whether anybody wants to hear of it."""
        with self._lock:
            self.subscribers += change

    def deliver_later(self, sink: Any) -> None:
        """Remember a sink that was closed on another thread while its subscribers still had events to hear."""
        with self._lock:
            self._late.append(weakref.ref(sink))


def _another_call(made: Compilation, call: int | None, entry: evidence.Entry | None) -> bool:
    """Tell whether what was traced before and never compiled belonged to an earlier call."""
    if entry is None or made.signature is None:
        return False
    return made.call != call or made.signature.ahead != entry.ahead


def compilation(key: FunctionKey, at: float, call: int | None, entry: evidence.Entry | None) -> Compilation:
    """Begin the record of a new program, with the signature of the call that wants it."""
    signature, unread = None, ""
    if evidence.is_jax(key):
        unread = "JAX's own helpers are not looked into."
    elif entry is None:
        unread = "the compile happened outside of a call that can be seen: a backward pass, another thread, or ahead of time."
    else:
        try:
            signature = signature_of(entry)
        except Exception as error:  # noqa: BLE001 - a class of the user's may fail here (__repr__, flattening); its call must not
            unread = f"the arguments could not be read: {type(error).__name__}: {error}"
    made = Compilation(key, 0, at, call, signature, unread)
    if not evidence.is_jax(key):
        HISTORY.add(made)
    return made


def _advance(started: _StartedStage, finished: FinishedStage) -> None:
    """Note in the record of the program what has just been done for it."""
    made, name = finished.compilation, evidence.bare_name(started.reported)
    made.failed = finished.failed
    if finished.stage == "trace":
        made.traced = True
    elif finished.stage == "lower":
        made.lowered = True
    else:
        made.compiled = not finished.failed
        made.cache_hit = finished.cache_hit
    if finished.failed or finished.stage == "compile":
        HERE.making.pop(name, None)


def _unregister(unregister: Callable[[Any], None], listener: Any) -> None:
    try:
        unregister(listener)
    except (AssertionError, ValueError):
        # Somebody called jax.monitoring.clear_event_listeners(): the listener is gone already, which is what we want.
        return


MONITOR = Monitor()
