"""`chart`: a record goes in, and the notebook has a picture that moves."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary
from weakref import ref as weakref

from traceonce.show import adapters, frontend
from traceonce.show.calls import CallsFeed, finding
from traceonce.show.lines import BarsFeed, TimelineFeed
from traceonce.show.live import Wire
from traceonce.show.records import Bars, Line, Timeline
from traceonce.show.still import still, still_bars, still_timeline

if TYPE_CHECKING:
    from traceonce.show.widgets import ChartWidget

_RUNNING = "Chart: calls, traces and compiles by function, drawn while the cell runs."


def chart(record: Any, *, numbers: bool | None = None) -> "Chart":
    """Show a record as a picture at once; a record that still grows moves while the cell runs.

    **Arguments**

    - `record`: what `watch()` or `watch_memory()` opened, a function that `watch` wrapped, what `plan(...)`,
      `plan.compare(...)` or `run_capped(...)` returned, samples of memory, a `Timeline`, or `Bars`.
    - `numbers`: whether bytes and seconds also go into the notebook's text and into a still picture, for places that draw no
      widgets. Such an output differs from run to run, so that a stored one does not compare. By default that is so for what was
      measured or planned, and not for a `Timeline` or `Bars` of one's own.

    In plain Python it prints: the counts when the block is left, a timeline when it is closed, bars at once.
    Raises `TypeError` for anything else.

    ```python
    with watch() as seen:
        chart(seen)
        for row in rows:
            step(params, row)
    ```
    """
    if isinstance(record, Timeline):
        return TimelineChart(record, numbers=bool(numbers))
    if isinstance(record, Bars):
        return BarsChart(record, numbers=bool(numbers))
    numbers = numbers is not False
    if adapters.is_comparison(record):
        return BarsChart(adapters.bars_of(record.plans), numbers=numbers)
    if adapters.is_plan(record):
        return BarsChart(adapters.bars_of({record.function: record}), numbers=numbers)
    if adapters.is_ending(record):
        title, words = "Memory of the child", adapters.ending_words(record)
        return TimelineChart(
            adapters.timeline_of_child(record.cap_mb, title, record.samples, words), numbers=numbers, done=True
        )
    if adapters.is_memory(record):
        return MemoryChart(record, numbers=numbers)
    if adapters.are_samples(record):
        return TimelineChart(adapters.timeline_of(record), numbers=numbers)
    seen = getattr(record, "seen", record)  # a watched function carries its record
    if all(hasattr(seen, name) for name in ("subscribe", "when_closed", "items", "events")):
        return CallsChart(seen)
    raise TypeError(
        "chart() draws what watch(), watch_memory(), plan() and run_capped() return, a Timeline or Bars, "
        f"not {type(record).__name__}."
    )


def child_chart(memory_mb: float, title: str = "Memory of the child", *, numbers: bool = True) -> "ChildChart":
    """Show the memory of a child on its way to its cap, while it runs.

    ```python
    drawn = child_chart(500)
    ending = run_capped(program, memory_mb=500, on_sample=drawn)
    drawn.close(ending)
    ```
    """
    return ChildChart(adapters.timeline_of_child(memory_mb, title), numbers=numbers)


class Chart:
    """A picture that was shown. Made by `chart`."""

    _feed: Any

    def __init__(self) -> None:
        self._shell: Any = frontend.kernel_shell()
        self._widget: ChartWidget | None = None
        self._wire: Wire | None = None
        self._shown_in: int | None = None

    @property
    def finding(self) -> str:
        """What the picture says, in words."""
        return str(self._feed.finding())

    def widget(self) -> "ChartWidget":
        """The widget, made on first use with the state of that moment."""
        if self._widget is None:
            from traceonce.show.widgets import ChartWidget

            self._widget = ChartWidget(state=self._feed.state() | {"done": self._done()})
            self._feed.changes()  # they are in the state already
            self._wire = Wire(self._feed, self._widget)
        return self._widget

    def _done(self) -> bool:
        return True

    def _text(self) -> str:
        return f"{self._feed.text()}"

    def _svg(self) -> str | None:
        return None

    def _show(self) -> None:
        if self._shell is not None:
            self._shown_in = self._shell.execution_count
            frontend.publish(self._text(), model_id=self.widget().model_id, svg=self._svg())

    def _ipython_display_(self) -> None:
        # `chart(...)` as the last line of a cell has been shown already; its name in a later cell shows it again.
        if self._shell is None:
            print(self.finding)
        elif self._shell.execution_count != self._shown_in:
            self._show()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class CallsChart(Chart):
    """Calls, traces and compiles, by function."""

    def __init__(self, seen: Any) -> None:
        super().__init__()
        self._seen = seen
        self._feed = CallsFeed(seen)
        self._unsubscribe: Callable[[], None] | None = None
        self._still_owed = not self._done()
        self._changed = False
        self._hooked = False
        self._show()
        if self._done():
            if self._shell is None:
                print(seen)
            return
        _stop_earlier(seen, self)
        self._unsubscribe = seen.subscribe(self._take)
        seen.when_closed(self._closed)
        if self._shell is not None:
            # A watched function's record has no end; and the end of the cell is where a picture must be right.
            self._shell.events.register("post_run_cell", self._cell_ended)
            self._hooked = True

    @property
    def finding(self) -> str:
        """What the picture says, in words: one line a function."""
        return finding(self._seen)

    def _done(self) -> bool:
        return bool(getattr(self._seen, "closed", False))

    def _text(self) -> str:
        return self.finding if self._done() else _RUNNING

    def _svg(self) -> str | None:
        return still(self._feed) if self._done() else None

    def _take(self, event: Any) -> None:
        self._changed = True
        self._feed.take(event)
        if self._wire is not None:
            self._wire.touch()

    def _closed(self) -> None:
        self._stop()
        if self._shell is None:
            print(self._seen)

    def _stop(self) -> None:
        """Hear of nothing more; what is drawn stays, and is right."""
        if self._unsubscribe is None:
            return
        self._unsubscribe()
        self._unsubscribe = None
        self._commit()
        if not self._still_owed:
            self._unhook()

    def _unhook(self) -> None:
        if self._hooked:
            self._hooked = False
            self._shell.events.unregister("post_run_cell", self._cell_ended)

    def _commit(self) -> None:
        if self._changed or self._done():
            self._changed = False
            if self._wire is not None:
                self._wire.finish()

    def _cell_ended(self, _result: Any = None) -> None:
        if self._still_owed:
            # Where widgets live this draws nothing: the chart above has it all. It comes at the end of the cell, not
            # of the block, so that what the learner prints in between stands nearer to the chart.
            self._still_owed = False
            frontend.publish(self.finding, model_id="", svg=still(self._feed))
        if self._done():
            self._stop()
        if self._unsubscribe is not None:
            self._commit()
        else:
            self._unhook()


_moving: WeakKeyDictionary[Any, "weakref[CallsChart]"] = WeakKeyDictionary()


def _stop_earlier(seen: Any, chart: CallsChart) -> None:
    """One chart of a record moves at a time: a cell run again leaves none behind that nobody sees."""
    earlier = _moving.get(seen)
    if earlier is not None and (held := earlier()) is not None:
        held._stop()
    _moving[seen] = weakref(chart)


class TimelineChart(Chart):
    """Bytes over time; grows by `append` until `close`."""

    def __init__(self, record: Timeline, *, numbers: bool = False, done: bool = False) -> None:
        super().__init__()
        self._feed = TimelineFeed(record)
        self._numbers = numbers
        # What has its points already is finished.
        self._open = not done and not any(line.points for line in record.lines)
        self._show()
        if self._shell is None and not self._open:
            print(self.finding)

    def append(self, label: str, seconds: float, value: float) -> None:
        """Add one point to the line `label`: `seconds` since the beginning, `value` in bytes. Main thread only."""
        self._feed.append(label, seconds, value)
        if self._wire is not None:
            self._wire.touch()

    def close(self, ending: Any = "") -> None:
        """Show the last state; `ending` says how it ended, such as `"killed by SIGKILL"`, or is what `run_capped` returned."""
        if not self._open:
            return
        self._open = False
        self._feed.ending = adapters.ending_words(ending) or self._feed.ending
        if self._wire is not None:
            self._wire.finish()
        if self._shell is None:
            print(self.finding)
        elif self._numbers:
            # Where widgets live this draws nothing: the chart above has it all.
            frontend.publish(self._text(), model_id="", svg=self._svg())

    def _done(self) -> bool:
        return not self._open

    def _text(self) -> str:
        return self.finding if self._numbers and self._done() else str(self._feed.text())

    def _svg(self) -> str | None:
        return still_timeline(self._feed) if self._numbers and self._done() else None


class ChildChart(TimelineChart):
    """The memory of a capped child; itself what `run_capped(..., on_sample=...)` calls."""

    def __call__(self, sample: Any) -> None:
        """Add one sample."""
        self.append("resident", sample.seconds, sample.rss_mb * adapters.MEGABYTE)


class MemoryChart(TimelineChart):
    """The memory of this process; grows until the block of `watch_memory()` is left."""

    def __init__(self, memory: Any, *, numbers: bool = True) -> None:
        self._memory = memory
        self._drawn = 0
        if memory.closed:
            super().__init__(adapters.timeline_of(memory.samples), numbers=numbers, done=True)
            return
        lines = tuple(Line(label) for label in adapters.lines_of(memory.samples))
        super().__init__(Timeline("Memory of this process", lines), numbers=numbers)
        self._take()
        memory.subscribe(self._take)
        memory.when_closed(self.close)  # after the last sample

    def _take(self, _sample: Any = None) -> None:
        samples = self._memory.samples
        while self._drawn < len(samples):
            one = samples[self._drawn]
            self._drawn += 1
            for label, value in adapters.values_of(one):
                self.append(label, one.at - samples[0].at, value)


class BarsChart(Chart):
    """Bytes side by side."""

    def __init__(self, record: Bars, *, numbers: bool = False) -> None:
        super().__init__()
        self._feed = BarsFeed(record)
        self._numbers = numbers
        if self._shell is None:
            print(self.finding)
        self._show()

    def _text(self) -> str:
        return self.finding if self._numbers else str(self._feed.text())

    def _svg(self) -> str | None:
        return still_bars(self._feed) if self._numbers else None
