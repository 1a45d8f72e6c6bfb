"""`watch`: count what JAX traces and compiles, in a block or for one function."""

from __future__ import annotations

import functools
import html
import threading
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from time import perf_counter
from typing import Any, overload

from traceonce.errors import TraceOnceError
from traceonce.observe import evidence
from traceonce.observe.monitor import MONITOR, ActiveCall, FinishedStage
from traceonce.observe.records import Counts, Event, FunctionKey

KEPT_EVENTS = 100_000
"""How many events a record keeps: the newest. Counts go on for ever."""

_watched: weakref.WeakSet[WatchedFunction] = weakref.WeakSet()


@dataclass(slots=True)
class _Row:
    """The running counts of one function."""

    watched: bool = False
    calls: int = 0
    traces: int = 0
    lowerings: int = 0
    compiles: int = 0
    cache_hits: int = 0
    trace_seconds: float = 0.0
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0

    def counts(self) -> Counts:
        _, calls, *rest = astuple(self)
        return Counts(calls if self.watched else None, *rest)


class Watch:
    """What was seen: counts by function, events in order, and a hook for charts.

    Made by `watch()` for a block, where it is also the context manager, and by `watch(fn)` as `fn.seen`.

    **Example**

    ```python
    with watch() as seen:
        step(params, x)
    seen["step"].compiles
    ```
    """

    def __init__(self, *, everything: bool = False) -> None:
        self.everything = everything
        self._rows: dict[FunctionKey, _Row] = {}
        self._events: deque[tuple[Any, ...]] = deque(maxlen=KEPT_EVENTS)
        self._lock = threading.Lock()
        self._total_events = 0
        self._subscribers: list[Callable[[Event], object]] = []
        self.unheard: deque[tuple[Any, ...]] = deque()
        self._delivering = False
        self._state = "new"

    # -- the block

    def __enter__(self) -> Watch:
        if self._state != "new":
            raise TraceOnceError("This record was already used for a block: open a new one with watch().", exit_code=2)
        self._state = "open"
        MONITOR.open_block(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: types.TracebackType | None
    ) -> None:
        self._state = "closed"
        MONITOR.close_block(self)
        if threading.current_thread() is threading.main_thread():
            self.deliver()
        elif self.unheard:
            MONITOR.deliver_later(self)

    @property
    def closed(self) -> bool:
        """Whether the block has been left: nothing will be added any more."""
        return self._state == "closed"

    # -- what was seen

    def __getitem__(self, which: str | Callable[..., Any]) -> Counts:
        """Return the counts of one function, by itself or by name.

        A name stands for all functions of that name; a function for the place where it was defined. A function that
        neither compiled nor was called in this record has zero counts.
        """
        if isinstance(which, str):
            chosen = [row for key, row in self._copy() if key.name == which]
            watched = any(function.key.name == which for function in tuple(_watched))
        elif callable(which):
            wanted = which.key if isinstance(which, WatchedFunction) else evidence.key_of(which)
            chosen = [row for key, row in self._copy() if key == wanted]
            watched = _is_watched(wanted)
        else:
            raise TypeError(f"seen[...] takes a function or its name, not {type(which).__name__}")
        return sum(chosen, Counts(calls=0 if watched else None))

    def __iter__(self) -> Iterator[FunctionKey]:
        """Iterate over the functions seen, in the order in which they first did something."""
        return iter([key for key, _ in self._copy()])

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        return True  # a record is a record, also while it is empty

    def items(self) -> list[tuple[FunctionKey, Counts]]:
        """Return each function seen with its counts."""
        return self._copy()

    @property
    def total(self) -> Counts:
        """The counts of all functions together."""
        return sum((counts for _, counts in self._copy()), Counts())

    @property
    def events(self) -> list[Event]:
        """The events kept, oldest first: at most the newest 100 000."""
        with self._lock:
            kept = list(self._events)
        return [Event(*raw) for raw in kept]

    @property
    def dropped(self) -> int:
        """How many events were too old to be kept. They are still in the counts."""
        with self._lock:
            return self._total_events - len(self._events)

    def subscribe(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Call `callback(event)` for each event from now on, and return a function that ends this.

        Callbacks run on the main thread, never inside JAX's tracing: when a watched call returns, when a function that
        nobody watches has compiled, and when the block is left. A callback that raises is dropped with a warning, so
        that a broken chart never breaks the computation.
        """
        self._subscribers.append(callback)

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)

        return unsubscribe

    # -- how it looks

    def __str__(self) -> str:
        rows = self._labelled()
        if not rows:
            return "nothing was compiled, and no watched function was called"
        head = ("calls", "traces", "lowerings", "compiles", "cache hits")
        width = max(len("function"), *(len(label) for label, _ in rows))
        lines = [f"{'function':<{width}}  " + "  ".join(head)]
        for label, cells in rows:
            lines.append(f"{label:<{width}}  " + "  ".join(f"{c:>{len(h)}}" for c, h in zip(cells, head, strict=True)))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = self._labelled()
        if not rows:
            return f"<p>{html.escape(str(self))}</p>"
        places = [key.location or "" for key, _ in self._copy()]
        head = ("function", "calls", "traces", "lowerings", "compiles", "cache hits")
        body = "".join(
            f'<tr><th scope="row" style="text-align:left" title="{html.escape(place, quote=True)}">'
            f"{html.escape(label)}</th>"
            + "".join(f'<td style="text-align:right">{cell}</td>' for cell in cells)
            + "</tr>"
            for (label, cells), place in zip(rows, places, strict=True)
        )
        return (
            "<table><thead><tr>"
            + "".join(f'<th scope="col">{title}</th>' for title in head)
            + f"</tr></thead><tbody>{body}</tbody></table>"
        )

    def __repr__(self) -> str:
        return f"<Watch {self._state}: {len(self._rows)} functions, {self._total_events} events>"

    def _labelled(self) -> list[tuple[str, tuple[str, ...]]]:
        used: dict[str, int] = {}
        rows = []
        for key, counts in self._copy():
            used[key.name] = used.get(key.name, 0) + 1
            label = key.name if used[key.name] == 1 else f"{key.name} ({used[key.name]})"
            calls = "-" if counts.calls is None else str(counts.calls)
            numbers = (counts.traces, counts.lowerings, counts.compiles, counts.cache_hits)
            rows.append((label, (calls, *map(str, numbers))))
        return rows

    def _copy(self) -> list[tuple[FunctionKey, Counts]]:
        with self._lock:
            return [(key, row.counts()) for key, row in self._rows.items()]

    # -- what the monitor and the watched functions tell

    def take_stage(self, stage: FinishedStage) -> None:
        """Add a stage that has ended. Runs on the thread that compiled."""
        if not (stage.own or self.everything):
            return
        raw = (stage.stage, stage.key, stage.at, stage.seconds, None, 0, 0, stage.failed, stage.cache_hit, stage.thread)
        with self._lock:
            row = self._row(stage.key)
            row.watched = row.watched or stage.owner is not None or _is_watched(stage.key)
            if stage.stage == "trace":
                row.traces += 1
                row.trace_seconds += stage.seconds
            elif stage.stage == "lower":
                row.lowerings += 1
                row.lower_seconds += stage.seconds
            else:
                row.compiles += 1
                row.compile_seconds += stage.seconds
                row.cache_hits += stage.cache_hit
            self._keep(raw)

    def take_call(self, key: FunctionKey, raw: tuple[Any, ...]) -> None:
        """Add a call that has returned or raised. Runs on the thread that called."""
        with self._lock:
            row = self._row(key)
            row.watched = True
            row.calls += 1
            self._keep(raw)

    def deliver(self) -> None:
        """Hand what subscribers have not heard to them. Runs on the main thread."""
        if self._delivering:
            return  # a callback made JAX compile: the loop below, further out, takes care of that event too
        self._delivering = True
        try:
            while self.unheard:
                event = Event(*self.unheard.popleft())
                for callback in tuple(self._subscribers):
                    self._tell(callback, event)
        finally:
            self._delivering = False

    def _tell(self, callback: Callable[[Event], object], event: Event) -> None:
        try:
            callback(event)
        except Exception as error:  # noqa: BLE001 - the error belongs to the callback, the call to the user
            if callback in self._subscribers:
                self._subscribers.remove(callback)
            warnings.warn(f"A subscriber of a watch() raised {error!r} and was dropped.", RuntimeWarning, stacklevel=2)

    def _row(self, key: FunctionKey) -> _Row:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row()
        return row

    def _keep(self, raw: tuple[Any, ...]) -> None:
        self._events.append(raw)
        self._total_events += 1
        if self._subscribers:
            self.unheard.append(raw)


def _is_watched(key: FunctionKey) -> bool:
    return any(function.key == key for function in tuple(_watched))


class WatchedFunction:
    """A callable that behaves like the one it wraps and keeps a record of its calls.

    `seen` is the running record: this function's own counts, and those of everything that compiled inside its calls.
    `counts` are this function's own. Attributes that are not found here are looked up on the wrapped callable, so that
    `.lower`, `.trace` and `.clear_cache` of a jitted function work.
    """

    __wrapped__: Callable[..., Any]
    key: FunctionKey
    seen: Watch

    def __init__(self, function: Callable[..., Any], *, everything: bool = False) -> None:
        functools.update_wrapper(self, function, updated=())
        self.__wrapped__ = function
        self.key = evidence.key_of(function)
        self.seen = Watch(everything=everything)
        self.seen._state = "open"
        self._jax_name = evidence.jax_name(function)
        self._jitted = callable(getattr(function, "lower", None))
        self._number = 0
        self._lock = threading.Lock()
        MONITOR.acquire()
        weakref.finalize(self, MONITOR.release).atexit = False
        _watched.add(self)

    @property
    def counts(self) -> Counts:
        """This function's own counts since it was watched."""
        return self.seen[self]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        calls = MONITOR.here.calls
        depth = len(calls)
        call = ActiveCall(self, self.key, self._jax_name, self._jitted, args, kwargs, self.seen)
        failed = True
        start = perf_counter()
        try:
            calls.append(call)
            result = self.__wrapped__(*args, **kwargs)
            failed = False
            return result
        finally:
            seconds = perf_counter() - start
            del calls[depth:]
            self._finish(call, start, seconds, failed, calls)

    def _finish(self, call: ActiveCall, start: float, seconds: float, failed: bool, outer: list[ActiveCall]) -> None:
        with self._lock:
            self._number = number = self._number + 1
        key, thread = self.key, threading.get_ident()
        raw = ("call", key, start, seconds, number, call.traces, call.compiles, failed, False, thread)
        self.seen.take_call(key, raw)
        for other in outer:
            other.sink.take_call(key, raw)
        for block in MONITOR.blocks:
            block.take_call(key, raw)
        if (self.seen.unheard or MONITOR.blocks) and MONITOR.between_calls():
            MONITOR.deliver(self.seen)

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
