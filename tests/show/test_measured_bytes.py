"""What `observe` and `sandbox` measured, drawn without a line of glue: plans, this process's memory, a capped child's."""

import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from traceonce import chart, plan, watch, watch_memory
from traceonce.observe import DeviceMemory, LiveBytes, MemorySample
from traceonce.sandbox import run_capped
from traceonce.sandbox.capped import Ending, Sample
from traceonce.show import Arm, Bars, Line, Timeline, child_chart, frontend

XS = jax.ShapeDtypeStruct((64, 50), jnp.float32)
SVG = "{http://www.w3.org/2000/svg}"


def spread(x):
    return jnp.sort(jnp.sin(x[:, None] * x[None, :]), axis=0).sum()


def words_of(picture: str) -> list[str]:
    """The texts of a picture; raises where it is no well-formed SVG."""
    return [str(text.text) for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def sample_at(at: float, rss: float, live: int | None = None, in_use: int | None = None) -> MemorySample:
    devices = None if in_use is None else (DeviceMemory("gpu:0", in_use, in_use, 10**9),)
    return MemorySample(at, int(rss), None if live is None else LiveBytes(1, 1, live, live), devices)


SAMPLES = [sample_at(5.0, 200e6, 1000, 50), sample_at(5.1, 260e6), sample_at(5.2, 240e6, 3000, 70)]


def test_plans_side_by_side_are_bars_of_their_totals(kernel: SimpleNamespace) -> None:
    arms = plan.compare(wide=(jax.vmap(spread), XS), chunked=(lambda v: jax.lax.map(spread, v, batch_size=8), XS))
    shown = chart(arms)
    state = shown.widget().state
    assert [arm["label"] for arm in state["arms"]] == ["wide", "chunked"]
    assert [sum(arm["values"]) for arm in state["arms"]] == [arms["wide"].total, arms["chunked"].total]
    assert state["arms"][0]["values"][2] == arms["wide"].temporaries
    assert state["ratio"].startswith("wide takes ")
    (output,) = kernel.outputs
    assert output["text/plain"] == shown.finding
    assert shown.finding.splitlines()[0] == f"wide: {state['arms'][0]['total']}"
    drawn = words_of(output["image/svg+xml"])
    assert {"wide", "chunked", "temporaries", state["arms"][0]["total"]} <= set(drawn)


def test_donated_memory_is_drawn_once() -> None:
    donating = plan(jax.jit(lambda s: s * 2, donate_argnums=0), jax.ShapeDtypeStruct((1000,), jnp.float32))
    (arm,) = chart(donating)._feed.record.arms
    assert arm.values == (4000, 0, donating.temporaries)
    assert sum(arm.values) == donating.total


def test_one_plan_is_one_bar_and_is_printed_in_plain_python(capsys: pytest.CaptureFixture[str]) -> None:
    one = plan(spread, jax.ShapeDtypeStruct((64,), jnp.float32))
    chart(one)
    assert capsys.readouterr().out.startswith("spread: ")


def test_a_plan_that_may_lack_temporaries_says_so_in_its_picture(kernel: SimpleNamespace) -> None:
    hiding = SimpleNamespace(
        function="f", platform="cpu", arguments=1, outputs=1, temporaries=0, aliases=0, complete=False
    )
    chart(hiding)
    assert "Planned bytes on cpu; temporaries may be missing" in words_of(kernel.outputs[0]["image/svg+xml"])


def test_samples_are_lines_over_the_seconds_since_the_first(kernel: SimpleNamespace) -> None:
    shown = chart(SAMPLES)
    state = shown.widget().state
    lines = {
        line["label"]: [point for _, *points in line["points"]["buckets"] for point in points]
        for line in state["lines"]
    }
    assert {label: len(points) for label, points in lines.items()} == {"RSS": 3, "live arrays": 2, "in use on gpu:0": 2}
    assert lines["RSS"][0] == (0.0, 200_000_000)
    assert lines["live arrays"][1] == (pytest.approx(0.2), 3000)
    (output,) = kernel.outputs
    assert output["text/plain"].splitlines()[0] == "RSS: from 200 MB to 240 MB, highest 260 MB at 0.10 s."
    assert {"260 MB", "RSS", "live arrays", "0.20 s"} <= set(words_of(output["image/svg+xml"]))


def test_a_block_that_samples_is_drawn_while_it_runs_and_done_when_it_is_left(kernel: SimpleNamespace) -> None:
    step = watch(jax.jit(lambda x: x + 1))
    with watch_memory(rate=1000) as memory:
        shown = chart(memory)
        assert kernel.outputs[0]["text/plain"] == "Chart over time: Memory of this process (RSS, live arrays)."
        assert "image/svg+xml" not in kernel.outputs[0]
        step(jnp.ones(3))
        drawn_meanwhile = shown._feed.points()["RSS"]
        assert not shown.widget().state["done"]
    assert len(drawn_meanwhile) >= 1
    state = shown.widget().state
    assert state["done"]
    assert sum(len(line["points"]["buckets"]) for line in state["lines"]) >= 4
    assert shown._feed.points()["RSS"][-1] == (memory.samples[-1].at - memory.samples[0].at, memory.samples[-1].rss)
    last = kernel.outputs[-1]
    assert len(kernel.outputs) == 2
    assert last["text/plain"] == shown.finding
    assert last[frontend.WIDGET_VIEW]["model_id"] == ""
    assert "RSS" in words_of(last["image/svg+xml"])
    chart(memory)
    assert kernel.outputs[-1]["text/plain"] == shown.finding


def test_memory_is_printed_in_plain_python_also_after_an_exception(capsys: pytest.CaptureFixture[str]) -> None:
    def one_sample_and_a_mistake() -> None:
        with watch_memory() as memory:
            chart(memory)
            raise KeyError("the learner's own")

    with pytest.raises(KeyError, match="the learner's own"):
        one_sample_and_a_mistake()
    assert capsys.readouterr().out.startswith("RSS: from ")


def test_without_numbers_the_outputs_are_the_same_in_each_run(kernel: SimpleNamespace) -> None:
    with watch_memory() as memory:
        chart(memory, numbers=False)
    chart(Bars("bytes", ("part",), (Arm("a", (1e6,)),)))
    chart(Timeline("bytes", (Line("a", ((0.0, 1.0),)),)))
    assert [output["text/plain"] for output in kernel.outputs] == [
        "Chart over time: Memory of this process (RSS, live arrays).",
        "Bar chart: bytes of a (part).",
        "Chart over time: bytes (a).",
    ]
    assert not any("image/svg+xml" in output for output in kernel.outputs)


def test_own_bytes_have_numbers_on_request(kernel: SimpleNamespace) -> None:
    chart(Bars("bytes", ("part",), (Arm("a", (1e6,)),)), numbers=True)
    chart(Timeline("bytes", (Line("a", ((0.0, 1e6),)),)), numbers=True)
    assert [output["text/plain"] for output in kernel.outputs] == [
        "a: 1.0 MB",
        "a: from 1.0 MB to 1.0 MB, highest 1.0 MB at 0.00 s.",
    ]
    assert all(words_of(output["image/svg+xml"]) for output in kernel.outputs)


GREEDY = """
import time
held = []
while True:
    held.append(bytearray(b"x") * 20_000_000)
    time.sleep(0.02)
"""


def test_a_child_on_its_way_to_its_cap_is_drawn_with_its_end(kernel: SimpleNamespace) -> None:
    drawn = child_chart(200)
    ending = run_capped(GREEDY, memory_mb=200, seconds=60, on_sample=drawn)
    drawn.close(ending)
    assert ending.kind == "over_cap"
    state = drawn.widget().state
    assert (state["ending"], state["limit"]["value"], state["done"]) == ("killed at the cap", 200e6, True)
    assert drawn._feed.points()["resident"][-1] == (ending.samples[-1].seconds, ending.samples[-1].rss_mb * 1e6)
    last = kernel.outputs[-1]
    assert last["text/plain"].endswith("Ended: killed at the cap.")
    assert {"killed at the cap", "the cap 200 MB"} <= set(words_of(last["image/svg+xml"]))


def test_a_child_that_has_ended_is_drawn_from_its_record(kernel: SimpleNamespace) -> None:
    record = Ending("finished", 0, (Sample(0.0, 50), Sample(1.0, 90)), 90, 1.1, 100)
    shown = chart(record)
    assert shown.finding == (
        "resident: from 50.0 MB to 90.0 MB, highest 90.0 MB at 1.00 s, 90% of the cap (100 MB).\n"
        "Ended: came to its end."
    )
    assert kernel.outputs[0]["text/plain"] == shown.finding


def test_a_child_that_left_no_sample_is_no_error(kernel: SimpleNamespace) -> None:
    shown = chart(Ending("raised", 1, (), 0.0, 0.1, 100))
    assert shown.finding == "resident: no sample yet.\nEnded: raised an exception."
    assert "image/svg+xml" not in kernel.outputs[0]


def test_what_stands_in_a_still_picture_is_escaped(kernel: SimpleNamespace) -> None:
    chart(Bars("<b>", ("<i>",), (Arm("a & b", (1.0,)),)), numbers=True)
    assert {"<b>", "<i>", "a & b"} <= set(words_of(kernel.outputs[0]["image/svg+xml"]))
