"""From a `watch` record to what the chart of calls shows."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from traceonce.show.envelope import Envelope
from traceonce.show.records import plural

if TYPE_CHECKING:
    from traceonce.observe import Counts, Event, FunctionKey

PANELS = 4
"""How many functions get a picture of their own; the table has them all."""

STILL_MARKS = 40
"""How many marks the still picture has room for."""

TRACED, COMPILED, FAILED = 1, 2, 4
_PLAIN_BUCKETS, _MARKED_BUCKETS, _ROWS = 600, 150, 200


class Seen(Protocol):
    """The part of `traceonce.observe.Watch` that a chart needs."""

    @property
    def events(self) -> "Sequence[Event]": ...

    def items(self) -> "Sequence[tuple[FunctionKey, Counts]]": ...

    def subscribe(self, callback: "Callable[[Event], object]") -> Callable[[], None]: ...

    def when_closed(self, callback: Callable[[], object]) -> object: ...


class _Series:
    """The calls of one function, or its compiles where nobody watches its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.compiles = 0
        self.plain = Envelope(_PLAIN_BUCKETS)
        self.marked = Envelope(_MARKED_BUCKETS)
        self.compiled = Envelope(_MARKED_BUCKETS)
        self.seconds = 0.0
        self.marked_seconds = 0.0
        self.first_marks: list[tuple[int, int]] = []  # (number, flags): the same in each run, unlike an envelope
        self._building = 0.0
        self._building_flags = 0

    def take(self, event: "Event") -> None:
        if event.kind == "call":
            self.calls += 1
            self.seconds += event.seconds
            flags = TRACED * (event.traces > 0) | COMPILED * (event.compiles > 0) | FAILED * event.failed
            if flags:
                self.marked_seconds += event.seconds
                self.marked.add((self.calls, event.seconds, flags))
                if len(self.first_marks) < STILL_MARKS:
                    self.first_marks.append((self.calls, flags))
            else:
                self.plain.add((self.calls, event.seconds))
            return
        self._building += event.seconds
        self._building_flags |= TRACED * (event.kind == "trace")
        if event.kind == "compile":
            self.compiles += 1
            self.compiled.add((self.compiles, self._building, self._building_flags | COMPILED))
            self._building, self._building_flags = 0.0, 0


class CallsFeed:
    """Turns events into the state of the chart: whole (`state`) or what is new (`changes`)."""

    kind = "calls"

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self._series: dict[FunctionKey, _Series] = {}
        for event in seen.events:
            self.take(event)

    def take(self, event: "Event") -> None:
        """Add one event."""
        series = self._series.get(event.function)
        if series is None:
            series = self._series[event.function] = _Series()
        series.take(event)

    def series(self) -> "list[tuple[str, Counts, _Series]]":
        """What the pictures show, a panel each: the watched functions, or where there are none those that compiled."""
        rows = labelled(self.seen)
        called = [row for row in rows if row[2].calls]
        return [(label, counts, self._series.get(key) or _Series()) for key, label, counts in (called or rows)[:PANELS]]

    def state(self) -> dict[str, Any]:
        """The whole picture."""
        return self._document(Envelope.state)

    def changes(self) -> dict[str, Any]:
        """The counts as they are, and the points that are new."""
        return self._document(Envelope.changes)

    def _document(self, part: Callable[[Envelope], dict[str, object]]) -> dict[str, Any]:
        rows = labelled(self.seen)
        return {
            "kind": self.kind,
            "title": "Calls, traces and compiles",
            "panels": [_panel(*drawn, part) for drawn in self.series()],
            "columns": ["function", "calls", "traces", "lowerings", "compiles", "cache hits"],
            "rows": [_table_row(label, counts) for _, label, counts in rows[:_ROWS]],
            "finding": finding(self.seen),
        }


def _panel(
    label: str, counts: "Counts", series: _Series, part: Callable[[Envelope], dict[str, object]]
) -> dict[str, Any]:
    by_call = bool(counts.calls)
    return {
        "label": label,
        "counts": counts_text(counts),
        "axis": "call" if by_call else "compile",
        "share": _share(series) if by_call else "",
        "plain": part(series.plain if by_call else Envelope(0)),
        "marked": part(series.marked if by_call else series.compiled),
    }


def _share(series: _Series) -> str:
    """The finding in seconds: it differs from run to run, so it is for the widget alone."""
    marked = series.marked.count
    if not marked or not series.plain.count or not series.seconds:
        return ""
    return f"{series.marked_seconds / series.seconds:.0%} of the time was in {plural(marked, 'marked call')}."


def labelled(seen: Seen) -> "list[tuple[FunctionKey, str, Counts]]":
    """Each function with a label of its own: two called `step` are `step` and `step (2)`."""
    used: dict[str, int] = {}
    rows = []
    for key, counts in seen.items():
        used[key.name] = used.get(key.name, 0) + 1
        rows.append((key, key.name if used[key.name] == 1 else f"{key.name} ({used[key.name]})", counts))
    return rows


def counts_text(counts: "Counts") -> str:
    """`3 calls, 1 trace, 1 compile`."""
    calls = "calls not watched" if counts.calls is None else plural(counts.calls, "call")
    return f"{calls}, {plural(counts.traces, 'trace')}, {plural(counts.compiles, 'compile')}"


def finding(seen: Seen, most: int = 6) -> str:
    """What the picture says, one line a function: `step: 3 calls, 1 trace, 1 compile`. Counts only, no seconds."""
    rows = labelled(seen)
    if not rows:
        return "Nothing was compiled, and no watched function was called."
    lines = [f"{label}: {counts_text(counts)}" for _, label, counts in rows[:most]]
    if rest := rows[most:]:
        traces, compiles = (sum(getattr(counts, name) for *_, counts in rest) for name in ("traces", "compiles"))
        lines.append(f"{plural(len(rest), 'more function')}: {plural(traces, 'trace')}, {plural(compiles, 'compile')}")
    return "\n".join(lines)


def _table_row(label: str, counts: "Counts") -> list[str]:
    calls = "not watched" if counts.calls is None else str(counts.calls)
    return [label, calls, *map(str, (counts.traces, counts.lowerings, counts.compiles, counts.cache_hits))]
