"""The one set of listeners on JAX's monitoring events, and where each event goes.

Listeners are registered while something is being watched and only then. They run on whichever thread compiles, in the
middle of JAX's own work: they read the stack, add to counts, and leave. Subscribers hear of it later, on the main thread.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from types import FrameType
from typing import Any, Literal, Protocol

from jax import monitoring

from traceonce.observe import evidence
from traceonce.observe.records import FunctionKey

Stage = Literal["trace", "lower", "compile"]

STAGES: dict[str, Stage] = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
CACHE_HIT = "/jax/compilation_cache/cache_hits"


class Sink(Protocol):
    """What receives events: an open `Watch`."""

    def take_stage(self, stage: FinishedStage) -> None: ...

    def take_call(self, key: FunctionKey, raw: tuple[Any, ...]) -> None: ...

    def deliver(self) -> None: ...


@dataclass(slots=True)
class ActiveCall:
    """A call of a watched function that is running on this thread."""

    owner: Any
    key: FunctionKey
    jax_name: str
    jitted: bool
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    sink: Sink
    traces: int = 0
    compiles: int = 0


@dataclass(slots=True)
class _StartedStage:
    stage: Stage
    reported: str
    key: FunctionKey
    owner: Any
    at: float
    error: BaseException | None
    cache_hit: bool = False


@dataclass(frozen=True, slots=True)
class FinishedStage:
    """A trace, a lowering or a compile that has ended."""

    stage: Stage
    key: FunctionKey
    owner: Any
    own: bool
    at: float
    seconds: float
    failed: bool
    cache_hit: bool
    thread: int


class _ThreadState(threading.local):
    """What is going on in one thread: watched calls, and stages that began and have not ended."""

    def __init__(self) -> None:
        self.calls: list[ActiveCall] = []
        self.stages: list[_StartedStage] = []


@dataclass(slots=True)
class Monitor:
    """Holds the listeners, the open blocks and the state of each thread. There is one: `MONITOR`."""

    blocks: tuple[Sink, ...] = ()
    here: _ThreadState = field(default_factory=_ThreadState)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _users: int = 0
    _known: dict[str, FunctionKey] = field(default_factory=dict)
    _late: list[weakref.ref[Any]] = field(default_factory=list)

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
        stage = STAGES.get(event)
        if stage is not None and isinstance(reported := about.get("fun_name"), str):
            self.here.stages.append(self._started(stage, reported, sys._getframe(1)))

    def _on_event(self, event: str, **_about: Any) -> None:
        if event == CACHE_HIT and self.here.stages:
            self.here.stages[-1].cache_hit = True

    def _on_end(self, event: str, seconds: float, **about: Any) -> None:
        stage = STAGES.get(event)
        if stage is None or not isinstance(reported := about.get("fun_name"), str):
            return
        here, started = self.here, None
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
            owner=started.owner,
            own=own,
            at=started.at,
            seconds=seconds,
            failed=error is not None and error is not started.error,
            cache_hit=started.cache_hit,
            thread=threading.get_ident(),
        )
        for call in here.calls:
            if own and stage == "trace":
                call.traces += 1
            elif own and stage == "compile":
                call.compiles += 1
            call.sink.take_stage(finished)
        for block in self.blocks:
            block.take_stage(finished)
        if stage == "compile" and self.between_calls():
            self.deliver()  # nobody watches the jitted function, so this is the last that is heard of its call

    def _started(self, stage: Stage, reported: str, frame: FrameType | None) -> _StartedStage:
        name = evidence.bare_name(reported)
        now, error = perf_counter(), sys.exc_info()[1]
        for call in reversed(self.here.calls):
            if call.jax_name == name:
                return _StartedStage(stage, reported, call.key, call.owner, now, error)
        entry = evidence.entry_of(frame, name)
        if entry is not None:
            key = evidence.key_of(entry.function)
            self._known[name] = key
        else:
            key = evidence.traced_source(frame, name) or self._known.get(name) or FunctionKey(name)
        return _StartedStage(stage, reported, key, None, now, error)

    # -- the subscribers' turn

    def between_calls(self) -> bool:
        """Whether this thread is outside every trace, lowering, compile and call of a watched jitted function."""
        return not self.here.stages and not any(call.jitted for call in self.here.calls)

    def deliver(self, *sinks: Sink) -> None:
        """Let subscribers hear what has happened, if this is the main thread."""
        if threading.get_ident() != threading.main_thread().ident:
            return
        for sink in sinks:
            sink.deliver()
        for sink in self.blocks:
            sink.deliver()
        for call in self.here.calls:
            call.sink.deliver()
        while self._late:
            with self._lock:
                reference = self._late.pop() if self._late else None
            if reference is not None and (sink_left := reference()) is not None:
                sink_left.deliver()

    def deliver_later(self, sink: Any) -> None:
        """Remember a sink that was closed on another thread while its subscribers still had events to hear."""
        with self._lock:
            self._late.append(weakref.ref(sink))


def _unregister(unregister: Callable[[Any], None], listener: Any) -> None:
    try:
        unregister(listener)
    except (AssertionError, ValueError):
        # Somebody called jax.monitoring.clear_event_listeners(): the listener is gone already, which is what we want.
        return


MONITOR = Monitor()
