"""`watch` and the watched function: behaves like what it wraps, and keeps a record."""

from __future__ import annotations

import functools
import itertools
import types
import warnings
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any, overload

from traceonce.errors import TraceOnceError
from traceonce.observe import evidence
from traceonce.observe.calls import KEPT_CALLS, LOGS, TRIMMED_CALLS, CallLog, Entry
from traceonce.observe.history import HISTORY
from traceonce.observe.monitor import HERE, MONITOR, ThreadState, compilation_of
from traceonce.observe.records import Counts, FunctionKey
from traceonce.observe.staleness import Snapshot, snapshot
from traceonce.observe.watching import Watch

FULL = KEPT_CALLS + TRIMMED_CALLS


class WatchedFunction:
    """A callable that behaves like the one it wraps and keeps a record of its calls.

    `seen` is the running record: this function's own counts, and those of everything that compiled inside its calls.
    `counts` are this function's own. Attributes that are not found here are looked up on the wrapped callable, so that
    `.lower`, `.trace` and `.clear_cache` of a jitted function work.
    """

    __slots__ = ("__dict__", "__weakref__", "_call", "_entries")

    __wrapped__: Callable[..., Any]
    _call: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], *, everything: bool = False) -> None:
        functools.update_wrapper(self, function, updated=())
        self.__wrapped__ = function
        self.key: FunctionKey = evidence.key_of(function)
        self.jax_name = evidence.jax_name(function)
        self.jitted = callable(getattr(function, "lower", None))
        self._log = CallLog(self.key)
        self._entries = self._log.entries
        self._call = self._call_first if self.jitted else function
        self.at_last_trace: tuple[Snapshot, Callable[[], Any] | None] | None = None
        self.seen: Watch = Watch.of_function(self._log, everything=everything)
        MONITOR.acquire()
        weakref.finalize(self, MONITOR.release).atexit = False
        LOGS.add(self._log)
        for block in MONITOR.blocks:
            block.add_log(self._log)

    @property
    def counts(self) -> Counts:
        """This function's own counts since it was watched."""
        return self.seen[self]

    @property
    def wrapped(self) -> Callable[..., Any]:
        """The callable that was given to `watch`."""
        return self.__wrapped__

    def next_call(self) -> int:
        """Return the number that the call running now will have."""
        return self._log.total() + 1

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        # Everything here is paid for by each steady call, after JAX's own code has emptied the processor's caches: a look-up
        # that takes 0.05 us in a loop of its own takes 0.3 us here.
        state = HERE.state
        calls = state.calls
        call = (self, args, kwargs)
        start = perf_counter()
        try:
            calls.append(call)
            result = self._call(*args, **kwargs)
        except BaseException:
            end = perf_counter()
            del calls[next((i for i, one in enumerate(calls) if one is call), len(calls)) :]
            self._finish(state, (start, end, state.ident, 0, 0, True), args)
            raise
        end = perf_counter()
        calls.pop()
        entries = self._entries
        if state.ended or calls or MONITOR.subscribers or len(entries) > FULL:
            self._finish(state, (start, end, state.ident), args)
        else:
            entries.append((start, end, state.ident))
        return result

    def _call_first(self, *args: Any, **kwargs: Any) -> Any:
        """Make the first call, and remember what it looked like if it was compiled before anybody watched."""
        start = perf_counter()
        result = self.__wrapped__(*args, **kwargs)
        self._call = self.__wrapped__
        if not any(at >= start for _, _, at in HERE.state.ended):
            made = compilation_of(self.key, start, 1, evidence.entry_of_call(self.__wrapped__, args, kwargs))
            if not HISTORY.knows(made):
                made.cached = True
                HISTORY.add(made)
        return result

    def _note_captured(self, args: tuple[Any, ...]) -> None:
        """Remember, for `stale`, what the function read from outside its arguments while it was traced just now."""
        numbers, _ = evidence.static_parameters(evidence.entry_of_call(self.__wrapped__, (), {}))
        instance = args[0] if args and 0 in numbers else None
        try:
            reference = None if instance is None else weakref.ref(instance)
        except TypeError:
            reference = None  # a static number or string, not an object with attributes
        try:
            self.at_last_trace = snapshot(self.__wrapped__, instance), reference
        except Exception as error:  # noqa: BLE001 - reading the user's objects (__repr__, properties) must not fail their call
            warnings.warn(
                f"stale({self.__name__}) will know nothing: reading its globals raised {error!r}.", stacklevel=3
            )

    def _finish(self, state: ThreadState, entry: Entry, args: tuple[Any, ...]) -> None:
        """Log a call during which something happened, or of which somebody wants to hear."""
        if state.ended:
            entry = self._with_stages(state, entry, args)
        raw = self._log.raw(self._log.keep(entry), entry)
        self.seen.take_call(raw)
        for caller, _, _ in state.calls:
            caller.seen.take_inner_call(raw)
        for block in MONITOR.blocks:
            block.take_call(raw)
        if MONITOR.between_calls(state):
            MONITOR.deliver(self.seen)

    def _with_stages(self, state: ThreadState, entry: Entry, args: tuple[Any, ...]) -> Entry:
        """Add to the log's entry how many traces and compiles ended during the call."""
        start, end, thread, *rest = entry
        failed = bool(rest and rest[-1])
        inside = itertools.takewhile(lambda ended: ended[2] >= start, reversed(state.ended))
        stages = [stage for stage, own, _ in inside if own]
        if not state.calls:
            state.ended.clear()
        if "trace" in stages and not failed and self.jitted:
            self._note_captured(args)
        return (start, end, thread, stages.count("trace"), stages.count("compile"), failed)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # not set yet: the object is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return f"<watched {self.__wrapped__!r}>"


@overload
def watch(function: None = None, /, *, everything: bool = False) -> Watch: ...
@overload
def watch(function: Callable[..., Any], /, *, everything: bool = False) -> WatchedFunction: ...
def watch(function: Callable[..., Any] | None = None, /, *, everything: bool = False) -> Watch | WatchedFunction:
    """Count what JAX traces, lowers and compiles.

    Without a function, `watch()` opens a block: it sees everything that compiles in the process while it is open, also
    in code that knows nothing of it. With a function, or as a decorator above `@jax.jit`, it returns a
    `WatchedFunction`, which records its calls as well.

    **Arguments**

    - `function`: a callable: `jax.jit(f)`, `eqx.filter_jit(f)`, a bound method, or plain Python.
    - `everything`: also show what JAX compiles for itself, such as the helpers behind `jnp.ones`.

    **Raises** `TraceOnceError` where `function` cannot be called.
    """
    if function is None:
        return Watch(everything=everything)
    if isinstance(function, WatchedFunction):
        return function
    if not callable(function):
        raise TraceOnceError(
            f"watch() takes a function, and {function!r} is not one: write `with watch() as seen:` to watch a block.",
            exit_code=2,
        )
    return WatchedFunction(function, everything=everything)
