"""Charts without a front end: what they send, how often, and what they say in words."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from traceonce import chart, watch
from traceonce.observe import Counts, Event, FunctionKey
from traceonce.show import Arm, Bars, Limit, Line, Timeline, charts, frontend, live
from traceonce.show.calls import CallsFeed, finding
from traceonce.show.envelope import Envelope
from traceonce.show.still import still

STEP = FunctionKey("step", "loop.py", 3)


class FakeSeen:
    """A record that a test fills; it behaves as `Watch` does towards a chart."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.counts: dict[FunctionKey, Counts] = {}
        self.callbacks: list[Callable[[Event], object]] = []
        self.endings: list[Callable[[], object]] = []
        self.closed = False

    def items(self) -> list[tuple[FunctionKey, Counts]]:
        return list(self.counts.items())

    def subscribe(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    def when_closed(self, callback: Callable[[], object]) -> None:
        self.endings.append(callback)

    def call(self, key: FunctionKey = STEP, seconds: float = 1e-4, *, traces: int = 0, compiles: int = 0) -> None:
        self.counts[key] = self.counts.get(key, Counts(calls=0)) + Counts(calls=1, traces=traces, compiles=compiles)
        event = Event("call", key, 0.0, seconds, self.counts[key].calls, traces, compiles)
        for callback in list(self.callbacks):
            callback(event)

    def close(self) -> None:
        self.closed = True
        for ending in self.endings:
            ending()

    def __str__(self) -> str:
        return "the record as text"


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(live, "perf_counter", clock)
    return clock


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict]]:
    """Every message of a chart in order: `("news", ...)` or `("state", ...)`."""
    from traceonce.show.widgets import ChartWidget

    messages: list[tuple[str, dict]] = []
    monkeypatch.setattr(ChartWidget, "send", lambda self, content, buffers=None: messages.append(("news", content)))
    original = charts.Chart.widget

    def widget(self):
        made = self._widget is None
        found = original(self)
        if made:
            found.observe(lambda change: messages.append(("state", change["new"])), "state")
        return found

    monkeypatch.setattr(charts.Chart, "widget", widget)
    return messages


# -- the envelope


def test_a_short_series_is_kept_whole() -> None:
    envelope = Envelope(100)
    for n in range(100):
        envelope.add((n, n % 7))
    assert envelope.points() == [(n, n % 7) for n in range(100)]


def test_a_long_series_stays_small_and_keeps_its_extremes() -> None:
    envelope = Envelope(100)
    for n in range(100_000):
        envelope.add((n, 1000.0 if n == 54_321 else -5.0 if n == 77_777 else float(n % 13)))
    points = envelope.points()
    assert 50 < len(points) <= 200
    assert (54_321, 1000.0) in points
    assert (77_777, -5.0) in points
    assert [n for n, _ in points] == sorted(n for n, _ in points)
    assert envelope.count == 100_000


def test_changes_rebuild_the_series_at_the_other_end() -> None:
    envelope = Envelope(20)
    width, held = 0, {}
    for n in range(1000):
        envelope.add((n, (n * 37) % 101))
        if n % 9 == 0 or n == 999:
            news = envelope.changes()
            if news["whole"] or news["width"] != width:
                held = {}
            width = news["width"]
            held |= {index: points for index, *points in news["buckets"]}
            assert len(news["buckets"]) <= 21
    assert [point for index in sorted(held) for point in held[index]] == envelope.points()


def test_what_was_sent_is_not_sent_again() -> None:
    envelope = Envelope(20)
    for n in range(5):
        envelope.add((n, n))
    envelope.changes()
    envelope.add((5, 5))
    assert envelope.changes() == {"width": 1, "whole": False, "buckets": [[5, (5, 5)]]}
    assert envelope.changes()["buckets"] == []


# -- messages


def test_ten_messages_a_second_at_any_rate_and_nothing_lost(kernel: SimpleNamespace, sent: list, clock: Clock) -> None:
    seen = FakeSeen()
    chart(seen)
    for n in range(20_000):  # two seconds of the clock
        clock.now += 1e-4
        seen.call(traces=n == 0, compiles=n == 0)
    assert 15 <= len(sent) <= 20
    seen.close()
    kind, state = sent[-1]
    assert kind == "state"
    assert state["done"] is True
    assert state["rows"] == [["step", "20000", "1", "0", "1", "0"]]
    assert state["panels"][0]["counts"] == "20000 calls, 1 trace, 1 compile"
    assert state["panels"][0]["marked"]["buckets"] == [[0, (1, 1e-4, 3)]]
    last = state["panels"][0]["plain"]["buckets"][-1]
    assert max(point[0] for point in last[1:]) > 20_000 - state["panels"][0]["plain"]["width"]


def test_a_view_that_was_drawn_late_finds_a_recent_state(kernel: SimpleNamespace, sent: list, clock: Clock) -> None:
    seen = FakeSeen()
    chart(seen)
    for _ in range(50):
        clock.now += 0.11
        seen.call()
    kinds = [kind for kind, _ in sent]
    assert 4 <= kinds.count("state") <= 5
    assert kinds.count("news") > 40


def test_news_and_states_together_give_the_same_points_as_the_last_state(
    kernel: SimpleNamespace, sent: list, clock: Clock
) -> None:
    seen = FakeSeen()
    chart(seen)
    held: dict[int, list] = {}
    for n in range(300):
        clock.now += 0.03
        seen.call(seconds=1e-5 * (1 + n % 17))
    seen.close()
    for _, document in sent[:-1]:
        part = document["panels"][0]["plain"]
        held = {} if part["whole"] else held
        held |= {index: points for index, *points in part["buckets"]}
    final = {index: points for index, *points in sent[-1][1]["panels"][0]["plain"]["buckets"]}
    assert len(final) == 300
    assert held == {index: final[index] for index in held}
    assert len(held) > 290


def test_the_saved_state_is_bounded_however_long_the_cell(kernel: SimpleNamespace) -> None:
    seen = FakeSeen()
    shown = chart(seen)
    for n in range(60_000):
        seen.call(traces=n % 3 == 0, compiles=n % 3 == 0, seconds=1e-5 * (1 + n % 101))
    seen.close()
    import json

    assert len(json.dumps(shown.widget().state)) < 100_000


def test_a_chart_hears_nothing_after_the_block(kernel: SimpleNamespace) -> None:
    seen = FakeSeen()
    chart(seen)
    seen.call()
    seen.close()
    assert seen.callbacks == []
    kernel.events.end_of_cell()
    assert kernel.events.registered == []


def test_the_cell_run_again_leaves_one_chart_that_moves(kernel: SimpleNamespace) -> None:
    seen = FakeSeen()
    chart(seen)
    kernel.events.end_of_cell()
    chart(seen)
    kernel.events.end_of_cell()
    assert len(seen.callbacks) == 1
    assert len(kernel.events.registered) == 1


def test_a_record_without_an_end_is_right_at_the_end_of_each_cell(kernel: SimpleNamespace) -> None:
    seen = FakeSeen()
    shown = chart(seen)
    seen.call()
    kernel.events.end_of_cell()
    assert shown.widget().state["panels"][0]["counts"] == "1 call, 0 traces, 0 compiles"
    kernel.execution_count = 2
    seen.call()
    kernel.events.end_of_cell()
    assert shown.widget().state["panels"][0]["counts"] == "2 calls, 0 traces, 0 compiles"
    assert len(kernel.outputs) == 2  # the widget and the still of the first cell


# -- what is shown


def test_one_panel_for_each_watched_function_and_a_row_for_all(kernel: SimpleNamespace) -> None:
    seen = FakeSeen()
    seen.counts[FunctionKey("inner")] = Counts(traces=1, compiles=1)
    shown = chart(seen)
    for n in range(6):
        seen.call(FunctionKey(f"f{n}"))
    seen.close()
    state = shown.widget().state
    assert [panel["label"] for panel in state["panels"]] == ["f0", "f1", "f2", "f3"]
    assert [row[0] for row in state["rows"]] == ["inner", "f0", "f1", "f2", "f3", "f4", "f5"]
    assert state["rows"][0][1] == "not watched"


def test_two_functions_of_one_name_are_told_apart() -> None:
    seen = FakeSeen()
    seen.call(FunctionKey("step", "a.py", 1))
    seen.call(FunctionKey("step", "b.py", 1), traces=1)
    assert finding(seen) == "step: 1 call, 0 traces, 0 compiles\nstep (2): 1 call, 1 trace, 0 compiles"


def test_many_functions_are_summed_up() -> None:
    seen = FakeSeen()
    for n in range(9):
        seen.call(FunctionKey(f"f{n}"), traces=1, compiles=2)
    assert finding(seen).splitlines()[-1] == "3 more functions: 3 traces, 6 compiles"


def test_functions_that_nobody_watches_are_drawn_by_compile() -> None:
    seen = FakeSeen()
    seen.counts[STEP] = Counts(traces=2, compiles=2)
    seen.events = [Event(kind, STEP, 0.0, 0.1) for kind in ("trace", "lower", "compile") * 2]
    panel = CallsFeed(seen).state()["panels"][0]
    assert panel["axis"] == "compile"
    assert panel["counts"] == "calls not watched, 2 traces, 2 compiles"
    assert [point[2] for _, point in panel["marked"]["buckets"]] == [3, 3]
    assert [point[1] for _, point in panel["marked"]["buckets"]] == pytest.approx([0.3, 0.3])


def test_a_compile_without_a_trace_and_a_call_that_raised_have_marks_of_their_own() -> None:
    seen = FakeSeen()
    seen.counts[STEP] = Counts(calls=3)
    seen.events = [
        Event("call", STEP, 0.0, 0.1, 1, traces=0, compiles=1),
        Event("call", STEP, 0.0, 0.1, 2, traces=1, compiles=0),
        Event("call", STEP, 0.0, 0.1, 3, failed=True),
    ]
    buckets = CallsFeed(seen).state()["panels"][0]["marked"]["buckets"]
    assert [point[2] for _, point in buckets] == [2, 1, 4]


def test_the_share_of_time_is_said_where_it_means_something() -> None:
    seen = FakeSeen()
    feed = CallsFeed(seen)
    seen.subscribe(feed.take)
    seen.call(seconds=0.9, traces=1, compiles=1)
    assert feed.state()["panels"][0]["share"] == ""
    seen.call(seconds=0.1)
    assert feed.state()["panels"][0]["share"] == "90% of the time was in 1 marked call."


def test_text_and_still_picture_hold_no_seconds(kernel: SimpleNamespace) -> None:
    outputs = []
    for seconds in (1e-5, 3e-2):
        kernel.outputs.clear()
        seen = FakeSeen()
        chart(seen)
        for n in range(500):
            seen.call(seconds=seconds * (1 + n % 7), traces=n in (0, 250), compiles=n in (0, 250))
        seen.close()
        kernel.events.end_of_cell()
        outputs.append(
            [{kind: data for kind, data in output.items() if kind != frontend.WIDGET_VIEW} for output in kernel.outputs]
        )
    assert outputs[0] == outputs[1]
    first, last = outputs[0]
    assert first == {"text/plain": "Chart: calls, traces and compiles by function, drawn while the cell runs."}
    assert last["text/plain"] == "step: 500 calls, 2 traces, 2 compiles"
    assert len(last["image/svg+xml"]) < 4000


def test_the_still_output_draws_nothing_where_the_widget_is(kernel: SimpleNamespace) -> None:
    seen = FakeSeen()
    shown = chart(seen)
    seen.call()
    seen.close()
    kernel.events.end_of_cell()
    views = [output[frontend.WIDGET_VIEW]["model_id"] for output in kernel.outputs]
    assert views == [shown.widget().model_id, ""]


def test_the_still_picture_is_well_formed_and_says_what_it_shows() -> None:
    seen = FakeSeen()
    feed = CallsFeed(seen)
    seen.subscribe(feed.take)
    key = FunctionKey("<lambda>")
    for n in range(100):
        seen.call(key, traces=n < 60, compiles=n < 60)
    picture = still(feed)
    assert picture is not None
    root = ElementTree.fromstring(picture)
    name = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{name}desc").text == "<lambda>: 100 calls, 60 traces, 60 compiles"
    assert "20 later marks not drawn" in [text.text for text in root.iter(f"{name}text")]


# -- plain Python


def test_plain_python_prints_the_record_when_the_block_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    seen = FakeSeen()
    chart(seen)
    seen.call()
    assert capsys.readouterr().out == ""
    seen.close()
    assert capsys.readouterr().out == "the record as text\n"


def test_a_real_block_is_printed_when_it_is_left_also_by_an_exception(capsys: pytest.CaptureFixture[str]) -> None:
    @watch
    @jax.jit
    def halve(x):
        return x / 2

    def two_calls_and_a_mistake() -> None:
        with watch() as seen:
            chart(seen)
            halve(1.0)
            halve(2.0)
            raise KeyError("the learner's own")

    with pytest.raises(KeyError, match="the learner's own"):
        two_calls_and_a_mistake()
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["function", "calls", "traces"]
    assert row.split()[:3] == ["halve", "2", "1"]


def test_a_real_block_is_drawn(kernel: SimpleNamespace) -> None:
    @watch
    @jax.jit
    def double(x):
        return 2 * x

    with watch() as seen:
        shown = chart(seen)
        for n in (1, 1, 2):
            double(jnp.ones(n))
    kernel.events.end_of_cell()
    assert shown.finding == "double: 3 calls, 2 traces, 2 compiles"
    assert shown.widget().state["rows"][0][:3] == ["double", "3", "2"]
    assert [output["text/plain"] for output in kernel.outputs][-1] == shown.finding
    assert kernel.events.registered == []


def test_a_watched_function_carries_its_record(kernel: SimpleNamespace) -> None:
    @watch
    @jax.jit
    def triple(x):
        return 3 * x

    triple(1.0)
    shown = chart(triple)
    triple(2.0)
    kernel.events.end_of_cell()
    assert shown.widget().state["panels"][0]["counts"] == "2 calls, 1 trace, 1 compile"
    assert [point[0] for _, point in shown.widget().state["panels"][0]["plain"]["buckets"]] == [2]


def test_anything_else_is_refused_with_what_can_be_drawn() -> None:
    with pytest.raises(TypeError, match=r"draws what watch\(\), .* return, a Timeline or Bars, not list"):
        chart([1, 2])


# -- bytes


def test_a_timeline_grows_and_says_how_it_ended(kernel: SimpleNamespace, sent: list, clock: Clock) -> None:
    shown = chart(Timeline("memory of the child", (Line("RSS"),), Limit("the cap", 500e6)))
    for n in range(100):
        clock.now += 0.02
        shown.append("RSS", n / 10, 100e6 + n * 4e6)
    shown.close("killed by SIGKILL")
    assert 15 <= len(sent) <= 21
    state = sent[-1][1]
    assert state["done"] is True
    assert state["finding"] == (
        "RSS: from 100 MB to 496 MB, highest 496 MB at 9.90 s, 99% of the cap (500 MB).\nEnded: killed by SIGKILL."
    )
    assert len(state["lines"][0]["points"]["buckets"]) == 100
    assert kernel.outputs[0]["text/plain"] == "Chart over time: memory of the child (RSS) against the cap."


def test_a_finished_timeline_is_printed_in_plain_python(capsys: pytest.CaptureFixture[str]) -> None:
    chart(Timeline("memory", (Line("RSS", ((0.0, 2e6), (1.0, 1.5e6))),)))
    assert capsys.readouterr().out == "RSS: from 2.0 MB to 1.5 MB, highest 2.0 MB at 0.00 s.\n"


def test_bars_say_the_ratio_and_their_text_names_no_number(kernel: SimpleNamespace) -> None:
    shown = chart(
        Bars("planned bytes", ("arguments", "temporaries"), (Arm("wide", (1e6, 20e6)), Arm("scan", (1e6, 2e6))))
    )
    assert shown.finding == "wide: 21.0 MB\nscan: 3.0 MB\nwide takes 7.0 times the bytes of scan."
    assert kernel.outputs[0]["text/plain"] == "Bar chart: planned bytes of wide, scan (arguments, temporaries)."
    assert shown.widget().state["rows"] == [
        ["wide", "1.0 MB", "20.0 MB", "21.0 MB"],
        ["scan", "1.0 MB", "2.0 MB", "3.0 MB"],
    ]


def test_an_arm_with_a_part_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="1 values for 2 parts"):
        Bars("planned bytes", ("arguments", "temporaries"), (Arm("wide", (1e6,)),))
