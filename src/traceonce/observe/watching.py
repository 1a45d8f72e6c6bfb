"""`Watch`: the record of what JAX traced and compiled, in a block or in the calls of one function."""

from __future__ import annotations

import html
import threading
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from typing import Any

from traceonce.errors import TraceOnceError
from traceonce.observe import evidence
from traceonce.observe.calls import LOGS, CallLog
from traceonce.observe.history import Compilation
from traceonce.observe.monitor import MONITOR, RawEvent, RunningStage
from traceonce.observe.records import Counts, Event, FunctionKey

KEPT_EVENTS = 100_000
"""How many traces, lowerings and compiles a record keeps: the newest. Counts go on for ever."""
KEPT_COMPILATIONS = 2_000
"""How many programs a record can explain: the newest."""


@dataclass(slots=True)
class _Row:
    """The running counts of one function."""

    watched: bool = False
    calls: int = 0
    first: float = float("inf")
    traces: int = 0
    lowerings: int = 0
    compiles: int = 0
    cache_hits: int = 0
    trace_seconds: float = 0.0
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0

    def counts(self) -> Counts:
        _, calls, _, *rest = astuple(self)
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
        self._events: deque[RawEvent] = deque(maxlen=KEPT_EVENTS)
        self._logs: dict[CallLog, int] = {}
        self._compilations: deque[Compilation] = deque(maxlen=KEPT_COMPILATIONS)
        self._latest: Compilation | None = None  # the one appended last: its stages mostly follow each other
        self._lock = threading.RLock()
        self._total_events = 0
        self._subscribers: list[Callable[[Event], object]] = []
        self._unheard: deque[RawEvent] = deque()
        self._closers: list[Callable[[], object]] = []
        self._delivering = False
        self._state = "new"

    @classmethod
    def of_function(cls, log: CallLog, *, everything: bool = False) -> Watch:
        """Make the running record of one watched function."""
        record = cls(everything=everything)
        record._state = "running"
        record._logs[log] = 0
        return record

    # -- the block

    def __enter__(self) -> Watch:
        if self._state != "new":
            raise TraceOnceError("This record was already used for a block: open a new one with watch().", exit_code=2)
        self._state = "open"
        for log in LOGS:
            self._logs[log] = log.total()
        MONITOR.open_block(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: types.TracebackType | None
    ) -> None:
        MONITOR.close_block(self)
        self._settle()
        self._state = "closed"
        if self._subscribers:
            MONITOR.count_subscribers(-len(self._subscribers))
        if threading.current_thread() is threading.main_thread():
            self.deliver()
        elif self._unheard or self._closers:
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
            chosen = [counts for key, counts in self.items() if key.name == which]
            watched = any(log.key.name == which for log in LOGS)
        elif callable(which):
            wanted = evidence.key_of(which)
            chosen = [counts for key, counts in self.items() if key == wanted]
            watched = LOGS.watches(wanted)
        else:
            raise TypeError(f"seen[...] takes a function or its name, not {type(which).__name__}")
        return sum(chosen, Counts(calls=0 if watched else None))

    def __iter__(self) -> Iterator[FunctionKey]:
        """Iterate over the functions seen, in the order in which they first did something."""
        return iter([key for key, _ in self.items()])

    def __len__(self) -> int:
        return len(self.items())

    def __bool__(self) -> bool:
        return True  # a record is a record, also while it is empty

    def items(self) -> list[tuple[FunctionKey, Counts]]:
        """Return each function seen with its counts, in the order in which they first did something."""
        with self._lock:
            rows = self._rows_with_calls()
        return [(key, row.counts()) for key, row in sorted(rows.items(), key=lambda item: item[1].first)]

    @property
    def total(self) -> Counts:
        """The counts of all functions together."""
        return sum((counts for _, counts in self.items()), Counts())

    @property
    def events(self) -> list[Event]:
        """The events kept, in the order in which they ended: the newest of each kind when there were very many."""
        with self._lock:
            kept = list(self._events)
            for log, number in self._logs.items():
                kept += [log.raw(*entry) for entry in log.after(number)]
        return [Event(*raw) for raw in sorted(kept, key=lambda raw: raw[2] + raw[3])]

    @property
    def compilations(self) -> list[Compilation]:
        """What `explain` reads: one record for each program that was made of a function of yours."""
        with self._lock:
            kept = {id(one): one for one in self._compilations}
        return [one for one in kept.values() if one.compiled or one.failed]

    @property
    def dropped(self) -> int:
        """How many events were too many to be kept. They are still in the counts."""
        with self._lock:
            missing = self._total_events - len(self._events)
            return missing + sum(log.total() - n - len(log.after(n)) for log, n in self._logs.items())

    def subscribe(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Call `callback(event)` for each event from now on, and return a function that ends this.

        Callbacks run on the main thread, never inside JAX's tracing: when a watched call returns, when a function that
        nobody watches has compiled, and when the block is left. A callback that raises is dropped with a warning, so
        that a broken chart never breaks the computation.
        """
        self._subscribers.append(callback)
        if not self.closed:
            MONITOR.count_subscribers(1)
        return lambda: self._unsubscribe(callback)

    def when_closed(self, callback: Callable[[], object]) -> None:
        """Call `callback()` once, on the main thread, after subscribers heard the last event: when the block is left.

        For a record that is closed already, that is now. A callback that raises is reported with a warning.
        """
        self._closers.append(callback)
        if self.closed and threading.current_thread() is threading.main_thread():
            self.deliver()

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
        places = ["" if key.file is None else evidence.place(key.file, key.line or 0) for key, _ in self.items()]
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
        return str(self)  # what a notebook shows where it may not show HTML

    def _labelled(self) -> list[tuple[str, tuple[str, ...]]]:
        used: dict[str, int] = {}
        rows = []
        for key, counts in self.items():
            used[key.name] = used.get(key.name, 0) + 1
            label = key.name if used[key.name] == 1 else f"{key.name} ({used[key.name]})"
            calls = "-" if counts.calls is None else str(counts.calls)
            numbers = (counts.traces, counts.lowerings, counts.compiles, counts.cache_hits)
            rows.append((label, (calls, *map(str, numbers))))
        return rows

    # -- what the monitor and the watched functions tell

    def add_log(self, log: CallLog) -> None:
        """Count the calls of a function that was watched after this block was opened."""
        with self._lock:
            self._logs[log] = 0

    def take_stage(self, running: RunningStage, raw: RawEvent) -> None:
        """Add a stage that has ended. Runs on the thread that compiled."""
        if not (running.own or self.everything):
            return
        seconds, made, stage, key = raw[3], running.compilation, running.stage, running.key
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                row = self._rows[key] = _Row()
            if running.at < row.first:
                row.first = running.at
            if running.watched:
                row.watched = True
            if stage == "trace":
                row.traces += 1
                row.trace_seconds += seconds
            elif stage == "lower":
                row.lowerings += 1
                row.lower_seconds += seconds
            else:
                row.compiles += 1
                row.compile_seconds += seconds
                row.cache_hits += running.cache_hit
            self._events.append(raw)
            self._total_events += 1
            if made.own and made is not self._latest:
                self._latest = made
                self._compilations.append(made)
        if self._subscribers:
            self._unheard.append(raw)

    def take_inner_call(self, raw: RawEvent) -> None:
        """Add a call of another watched function inside a call of this record's function."""
        with self._lock:
            row = self._row(self._rows, raw[1], raw[2])
            row.watched = True
            row.calls += 1
            self._events.append(raw)
            self._total_events += 1
        self.take_call(raw)

    def take_call(self, raw: RawEvent) -> None:
        """Keep an event for the subscribers; its count is in the function's own log."""
        if self._subscribers:
            self._unheard.append(raw)

    def deliver(self) -> None:
        """Hand what subscribers have not heard to them. Runs on the main thread."""
        if self._delivering or not (self._unheard or (self.closed and self._closers)):
            return  # a callback made JAX compile: the loop below, further out, takes care of that event too
        self._delivering = True
        try:
            while self._unheard:
                event = Event(*self._unheard.popleft())
                for callback in tuple(self._subscribers):
                    self._tell(callback, event)
            while self.closed and self._closers:
                self._tell(self._closers.pop(0))
        finally:
            self._delivering = False

    def _tell(self, callback: Callable[..., object], *event: Event) -> None:
        try:
            callback(*event)
        except Exception as error:  # noqa: BLE001 - the error belongs to the callback, the call to the user
            self._unsubscribe(callback)
            warnings.warn(f"A subscriber of a watch() raised {error!r} and was dropped.", RuntimeWarning, stacklevel=2)

    def _unsubscribe(self, callback: Callable[[Event], object]) -> None:
        if callback in self._subscribers:
            self._subscribers.remove(callback)
            if not self.closed:
                MONITOR.count_subscribers(-1)

    def _settle(self) -> None:
        """Take over from the logs what belongs to this block, which ends now."""
        with self._lock:
            self._rows = self._rows_with_calls()
            for log, number in self._logs.items():
                entries = log.after(number)
                self._total_events += max(log.total() - number, len(entries))
                self._events = deque([*self._events, *(log.raw(*entry) for entry in entries)])
            self._logs.clear()

    def _rows_with_calls(self) -> dict[FunctionKey, _Row]:
        """Return the rows with the calls from the logs added; the rows of this record stay as they are."""
        rows = {key: replace(row) for key, row in self._rows.items()}
        if not self.closed:
            alive = {log.key for log in LOGS}
            for key, row in rows.items():
                row.watched = row.watched or key in alive
        for log, number in self._logs.items():
            calls = log.total() - number
            if calls or log.key in rows:
                row = self._row(rows, log.key, log.start_after(number) if calls else float("inf"))
                row.watched = True
                row.calls += calls
        return rows

    @staticmethod
    def _row(rows: dict[FunctionKey, _Row], key: FunctionKey, at: float) -> _Row:
        row = rows.get(key)
        if row is None:
            row = rows[key] = _Row()
        row.first = min(row.first, at)
        return row
