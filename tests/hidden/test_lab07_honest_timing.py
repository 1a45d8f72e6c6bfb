"""Hidden asserts of lab 07.

The student's functions run against a device on paper that is given in the lab: its clock moves by the costs that are drawn
here, and by nothing else. So what a function returns says what it waited for, exactly, and no assert depends on a real clock.

Costs are whole numbers of ms, each from a range of its own, so that no sum of wrong parts is the right sum: build 200 to 400,
enqueue 11 to 19, copy 41 to 69, fetch 23 to 37, and a run of 80 to 140.
"""

import re
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from traceonce.grade.hidden import Host, graded

BOUNDARY = "inputs placed before, results left on the device"
RULE = "every leaf awaited"


@dataclass(frozen=True)
class Costs:
    """What things take on the device, in ms. `run` has a number for each leaf of the result."""

    build: int
    enqueue: int
    copy: int
    run: tuple[int, ...]

    @property
    def warm(self):
        return self.enqueue + max(self.run)


def whole(lab, low, high):
    return int(lab.rng.integers(low, high))


def costs_of(lab, slowest=1):
    """Three leaves, of which the one at `slowest` takes longest by far."""
    run = [whole(lab, 15, 30), whole(lab, 30, 45), whole(lab, 45, 60)]
    lab.rng.shuffle(run)
    run[slowest] = whole(lab, 80, 140)
    return Costs(whole(lab, 200, 400), whole(lab, 11, 19), whole(lab, 41, 69), tuple(run))


def same(got, expected):
    """Equal up to float64 rounding."""
    return abs(float(got) - expected) <= 1e-9 * max(1.0, abs(expected))


def finished(lab, costs):
    return float(lab.call("try_finished", costs.run, costs.enqueue, whole(lab, 23, 37)))


def bench(lab, costs, inputs=2, calls=20, stumble=(0, 0, 0)):
    shapes = [tuple(int(n) for n in lab.rng.integers(2, 30, 2)) for _ in range(inputs)]
    return lab.call(
        "try_bench",
        shapes,
        calls,
        costs.copy,
        stumble,
        build=costs.build,
        enqueue=costs.enqueue,
        run=costs.run,
    )


# finished -------------------------------------------------------------------------------------------------------------


@graded(
    points=2,
    task="finished",
    title="The clock stops after the work",
    hint="A call returns a promise, so the time should be read after jax.block_until_ready(result), by the clock that was "
    "given. The time until the call returns is the enqueue alone.",
)
def test_clock_stops_after_the_work(lab):
    costs = costs_of(lab)
    one_leaf = Costs(costs.build, costs.enqueue, costs.copy, (max(costs.run),))
    assert finished(lab, one_leaf) >= one_leaf.warm - 1e-6


@graded(
    points=2,
    task="finished",
    title="Every leaf is awaited, whichever is the slowest",
    hint="The result is a tree, and any of its leaves may be the slowest: the first, the last, one in between. All should be "
    "awaited: jax.block_until_ready takes the whole tree.",
)
def test_every_leaf_is_awaited(lab):
    for slowest in (0, 1, 2):
        costs = costs_of(lab, slowest)
        assert finished(lab, costs) >= costs.warm - 1e-6


@graded(
    points=1,
    task="finished",
    title="Nothing is fetched while the clock runs",
    hint="The time should be that of enqueue and run, with no copy of the result in it. np.asarray, float and .item() wait, and "
    "then copy; block_until_ready waits alone.",
)
def test_nothing_is_fetched(lab):
    costs = costs_of(lab)
    got = finished(lab, costs)
    assert costs.enqueue < got
    assert got <= costs.warm + 1e-6


# report_line ----------------------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="report_line",
    title="The line names the device of the inputs, the versions, the calls and the rules",
    hint="The line should be one line, and hold the device_kind of the device on which the inputs lie (not of the first device there "
    "is), the versions of jax and jaxlib (both, also where they are equal), the number of calls, BOUNDARY and RULE.",
)
def test_line_names_device_versions_and_rules(lab):
    kind, calls = f"mill {whole(lab, 1000, 10_000)}", whole(lab, 200, 1000)
    line = lab.call("try_report", [(3,), (4, 4)], calls, kind)
    assert isinstance(line, str)
    assert len(line.strip().splitlines()) == 1
    for part in (kind, BOUNDARY, RULE):
        assert part in line
    versions = [version(name) for name in ("jax", "jaxlib")]
    assert all(line.count(each) >= versions.count(each) for each in versions)
    assert re.search(rf"(?<!\d){calls}(?!\d)", line)


@graded(
    points=1,
    task="report_line",
    title="The line names dtype and shape of every input",
    hint="Each leaf of the inputs should be in the line, as dtype[shape]: float32[5,7], float32[] for a scalar. One leaf of "
    "several is not enough, nor is a shape with a dtype that is taken for granted.",
)
def test_line_names_every_input(lab):
    sizes = [int(n) for n in lab.rng.choice(np.arange(2, 90), 4, replace=False)]
    line = lab.call("try_report", [(sizes[0], sizes[1]), (), (sizes[2],), (sizes[3], 2, 3)], 20)
    for part in (f"{sizes[0]},{sizes[1]}", "", f"{sizes[2]}", f"{sizes[3]},2,3"):
        assert f"float32[{part}]" in line
    assert f"int32[{sizes[0]}]" in lab.call("try_report", [(sizes[0],)], 20, dtype="int32")


@graded(
    points=1,
    task="report_line",
    title="The line says where compiled programs are cached, or that they are not",
    hint="The line should hold jax.config.jax_compilation_cache_dir as it is now, and 'no cache' where it is not set. A cache on "
    "disk changes the cold figure, so nobody may guess it.",
)
def test_line_says_the_cache_policy(lab):
    folder = f"shelf/{whole(lab, 1000, 10_000)}"
    cached = lab.call("try_report", [(3,)], 20, "paper", folder)
    assert folder in cached
    assert "no cache" not in cached
    assert "no cache" in lab.call("try_report", [(3,)], 20, "paper", None)


# bench ----------------------------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="bench",
    title="transfer is the time until the inputs have arrived",
    hint="place(inputs) returns a promise, as device_put does. The transfer should end when every input is ready, so wait for "
    "what place returned, and only then read the clock.",
)
def test_transfer_ends_when_the_inputs_are_there(lab):
    costs = costs_of(lab)
    assert same(bench(lab, costs, inputs=3)["transfer"], 3 * costs.copy)


@graded(
    points=2,
    task="bench",
    title="cold is build, enqueue and run of the first call, and nothing else",
    hint="cold should be the first call of all, finished, on inputs that have arrived. A warm-up before it takes the build away; "
    "a transfer that is still under way, or NumPy inputs, add a copy.",
)
def test_cold_is_the_first_call(lab):
    drawn = costs_of(lab)
    costs = Costs(whole(lab, 60, 90), drawn.enqueue, drawn.copy, drawn.run)  # the build does not hide three copies
    assert same(bench(lab, costs, inputs=3)["cold"], costs.build + costs.warm)


@graded(
    points=2,
    task="bench",
    title="latency has no compile in it",
    hint="The first call should be no sample of the warm latency, not even one of many: with few calls it decides the figure.",
)
def test_latency_has_no_compile_in_it(lab):
    costs = costs_of(lab)
    assert bench(lab, costs, calls=1)["latency"] < costs.build


@graded(
    points=2,
    task="bench",
    title="latency is that of a finished call on placed inputs",
    hint="A warm call should take enqueue and run. More: NumPy inputs are copied in each call, so pass what place returned. Less: "
    "nobody waited for the result. And each input should be an argument of its own: step(*inputs).",
)
def test_latency_is_of_a_finished_call_on_placed_inputs(lab):
    costs = costs_of(lab)
    got = bench(lab, costs, inputs=3)
    assert same(got["latency"], costs.warm)
    assert got["arguments"] == [3]


@graded(
    points=2,
    task="bench",
    title="Calls that stumble leave the latency as it is",
    hint="Every fifth call takes much longer here, or is quicker by chance. Neither should move the figure: the median of all "
    "samples, not their mean, largest, smallest or first.",
)
def test_stumbles_leave_the_latency(lab):
    costs = costs_of(lab)
    for more in (whole(lab, 2000, 5000), -whole(lab, 15, 25)):
        assert same(bench(lab, costs, stumble=(5, more, 2))["latency"], costs.warm)


@graded(
    points=2,
    task="bench",
    title="In the burst nobody waits between the calls",
    hint="Throughput should be the number of calls over the time of all of them, enqueued one after the other and warm. With a "
    "wait, or a build, in between it is 1 / latency or less: the next call could have been enqueued meanwhile.",
)
def test_nobody_waits_within_the_burst(lab):
    costs, calls = costs_of(lab), whole(lab, 20, 30)
    longest = costs.enqueue + calls * max(costs.run)
    assert float(bench(lab, costs, calls=calls)["throughput"]) >= 0.98 * calls / longest


@graded(
    points=2,
    task="bench",
    title="The burst ends when its results are there",
    hint="The device cannot finish more calls in a time than its runs allow, so the clock should stop after the last result is "
    "ready. And throughput is calls for each unit of time, not time for each call.",
)
def test_burst_ends_with_its_results(lab):
    costs, calls = costs_of(lab), whole(lab, 20, 30)
    got = float(bench(lab, costs, calls=calls)["throughput"])
    assert 0 < got <= 1.0001 / max(costs.run)


@graded(
    points=1,
    task="bench",
    title="The report is about what was measured",
    hint="The report should be the line for the placed inputs: float32, where the host had float64. And the number of calls in it "
    "should be the number that was made: `calls` for the latency, and `calls` for the burst.",
)
def test_report_is_about_what_was_measured(lab):
    height, width, calls = whole(lab, 30, 60), whole(lab, 60, 90), whole(lab, 200, 300)
    got = lab.call("try_bench", [(height, width)], calls)
    assert got["runs"] > 2 * calls
    report = got["report"]
    assert f"float32[{height},{width}]" in report
    assert "float64" not in report
    assert str(calls) in report


# compare --------------------------------------------------------------------------------------------------------------


def arms(lab):
    """Runs of two arms with three leaves, the last one not the slowest, and the ratio of their finished calls."""
    a, b = whole(lab, 80, 100), whole(lab, 160, 240)
    return (20, a, 30), (25, b, 35), (10 + b) / (10 + a)


@graded(
    points=2,
    task="compare",
    title="The ratio is that of b over a, both warm and finished",
    hint="Without any disturbance the result should be the time of b over the time of a: every leaf awaited, no first call among "
    "the samples, and b on top.",
)
def test_ratio_is_b_over_a(lab):
    run_a, run_b, ratio = arms(lab)
    for rounds in (1, 8):
        build = whole(lab, 1000, 2000)
        assert same(lab.call("try_compare", run_a, run_b, rounds, build_b=build), ratio)


@graded(
    points=3,
    task="compare",
    title="A device that drifts leaves the ratio as it is",
    hint="The device gets slower from run to run. All of a and then all of b should not be it: take the arms in turn, a pair for "
    "each round, and the drift is in both members of a pair.",
)
def test_drift_leaves_the_ratio(lab):
    run_a, run_b, ratio = arms(lab)
    got = lab.call("try_compare", run_a, run_b, 21, float(lab.rng.uniform(0.02, 0.04)))
    assert abs(float(got) / ratio - 1) < 0.07


@graded(
    points=2,
    task="compare",
    title="Calls that stumble leave the ratio as it is",
    hint="Every seventh run takes much longer here, or is quicker by chance. The median of the rounds should not care; a mean, a "
    "sum and a minimum do.",
)
def test_stumbles_leave_the_ratio(lab):
    run_a, run_b, ratio = arms(lab)
    for more in (whole(lab, 2000, 5000), -whole(lab, 30, 40)):
        assert same(lab.call("try_compare", run_a, run_b, 21, 0.0, (7, more, 3)), ratio)


@graded(
    points=1,
    task="compare",
    title="More rounds are more calls",
    hint="compare should make as many rounds as it is asked for: a median over more of them holds better, and costs more calls.",
)
def test_rounds_are_made(lab):
    few, many = whole(lab, 4, 8), whole(lab, 40, 60)
    assert lab.call("runs_of_compare", many) - lab.call("runs_of_compare", few) >= many - few


# agree ----------------------------------------------------------------------------------------------------------------


def answer(lab):
    """A tree of two float32 leaves, the second of which is very small; numbers between half its scale and its scale."""
    w = lab.rng.choice([-1, 1], (3, 4)) * lab.rng.uniform(0.5, 1, (3, 4))
    b = lab.rng.uniform(0.5, 1, 4) * 1e-9
    return {"w": w.astype("float32"), "b": b.astype("float32")}


def agree(lab, a, b, rtol=1e-5):
    left, right = ({name: Host(leaf) for name, leaf in tree.items()} for tree in (a, b))
    return lab.call("agree", left, right, rtol)


@graded(
    points=2,
    task="agree",
    title="Rounding is accepted",
    hint="Results that differ by a few roundings of the leaf's largest number should agree, an element near zero included. Equal "
    "bits are not asked for, and the tolerance belongs to the leaf, not to each element. A leaf of zeros should agree with itself: "
    "a difference that is divided by the magnitude is 0 / 0 there.",
)
def test_rounding_is_accepted(lab):
    one = answer(lab)
    one["w"] = -np.abs(one["w"])  # the largest magnitude is that of a negative number
    one["z"] = np.zeros(4, "float32")
    one["w"][1, 2] = 1e-7
    noise = lab.rng.uniform(0.5, 1, (3, 4)) * 1e-6
    other = one | {"w": (one["w"] + noise).astype("float32")}
    assert bool(agree(lab, one, other)) is True
    assert bool(agree(lab, one, one)) is True


@graded(
    points=2,
    task="agree",
    title="A difference beyond the tolerance is found, in any element of any leaf",
    hint="One element of one leaf that is off should be enough for False, also where the leaf's numbers are tiny: a fixed absolute "
    "tolerance, an average, or a look at one leaf lets it through. So does `if difference > limit` with a NaN, and NaN in both is "
    "no agreement. And rtol is the argument.",
)
def test_difference_is_found_in_any_leaf(lab):
    one = answer(lab)
    assert bool(agree(lab, one, one)) is True
    for name in one:
        other = {key: leaf.copy() for key, leaf in one.items()}
        other[name].flat[whole(lab, 0, 4)] *= np.float32(1.002)
        assert bool(agree(lab, one, other, 5e-4)) is False
        assert bool(agree(lab, one, other, 1e-2)) is True
        other[name].flat[whole(lab, 0, 4)] = np.nan
        assert bool(agree(lab, one, other, 1e-2)) is False
        assert bool(agree(lab, other, other, 1e-2)) is False


@graded(
    points=2,
    task="agree",
    title="Another dtype, shape or structure does not agree",
    hint="float64 against float32 should be False: it is another computation. So should shape (4, 1) against (4,), which broadcasts, "
    "and a tree with an entry more or less, or one under another name.",
)
def test_other_form_does_not_agree(lab):
    one = answer(lab)
    assert bool(agree(lab, one, one)) is True
    b = one["b"]
    for other in (
        one | {"b": b.astype("float64")},
        one | {"b": np.full((4, 1), b[0], "float32")},
        {"w": one["w"]},
        one | {"z": b},
        {"w": one["w"], "a": b},
    ):
        same_b = one | {"b": np.full(4, b[0], "float32")} if np.shape(other.get("b")) == (4, 1) else one
        assert bool(agree(lab, same_b, other)) is False


# peaks ----------------------------------------------------------------------------------------------------------------


@graded(
    points=2,
    task="peaks",
    title="Each arm has a process of its own",
    hint="A peak does not fall: what runs second in a process inherits the peak of the first. The smaller arm should show its own "
    "figure in any order, so start a process for each.",
)
def test_each_arm_has_its_own_process(lab):
    large, small, base = whole(lab, 300, 500), whole(lab, 20, 60), whole(lab, 150, 250)
    for sizes in ({"large": large, "small": small}, {"small": small, "large": large}):
        got = lab.call("try_peaks", sizes, [base])
        assert same(got["large"] - got["small"], large - small)


@graded(
    points=1,
    task="peaks",
    title="The start of its own process is subtracted",
    hint="Each process has a peak before it runs anything, and each another one. The result should be what the arm adds to the "
    "start of the process that ran it.",
)
def test_own_start_is_subtracted(lab):
    sizes = {"first": whole(lab, 100, 200), "second": whole(lab, 300, 400), "third": whole(lab, 20, 60)}
    starts = [whole(lab, 150, 200), whole(lab, 250, 300), whole(lab, 350, 400)]
    got = lab.call("try_peaks", sizes, starts)
    assert got.keys() == sizes.keys()
    assert all(same(got[name], size) for name, size in sizes.items())
