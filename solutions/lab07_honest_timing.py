# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   traceonce:
#     lab: lab07_honest_timing
# ---

# %% [markdown]
# # Lab 07 · Measure finished work
#
# ## Situation
#
# A benchmark in a repository says that the new model is 41 times faster than the old one. Somebody runs it with the *same*
# model as old and new, and it says 41 again. People have reported the faults in it one by one:
# [an enqueue taken for a run](https://github.com/jax-ml/jax/issues/1219),
# [a cost that moved to another line](https://github.com/jax-ml/jax/issues/802),
# [compile and run in one number](https://github.com/jax-ml/jax/issues/16611).
#
# You build what should stand there: `bench` with its report line, a comparison that holds on a machine that drifts, a gate for
# equal answers, and peaks of memory. About 35 minutes.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones with other costs.
#
# Real clocks are noise. So your functions get their clock as an argument, and are tried on **a device on paper**: it keeps the
# rules of JAX, and its clock moves only when something takes time. The same functions work on the real device.

# %% nbgrader={"grade": false, "grade_id": "given_imports", "locked": true, "schema_version": 3, "solution": false, "task": false}
import time
from dataclasses import dataclass
from statistics import median

import jax
import numpy as np

FLOAT32 = np.dtype("float32")
BOUNDARY = "inputs placed before, results left on the device"
RULE = "every leaf awaited"


# %% [markdown]
# An array on that device is a promise, like JAX's. Waiting for it takes until it is ready. Fetching its numbers, by
# `np.asarray`, `float` or `.item()`, waits and then copies.


# %% nbgrader={"grade": false, "grade_id": "given_array", "locked": true, "schema_version": 3, "solution": false, "task": false}
@dataclass(eq=False)
class PaperArray:
    device: "Paper"
    ready: float
    shape: tuple = ()
    dtype: np.dtype = FLOAT32

    def block_until_ready(self):
        self.device.now = max(self.device.now, self.ready)
        return self

    def __array__(self, dtype=None, copy=None):
        self.block_until_ready()
        self.device.now += self.device.fetch
        return np.zeros(self.shape, dtype or self.dtype)

    __float__ = item = lambda self: float(np.asarray(self).ravel()[0])

    def devices(self):
        return {self.device}


# %% [markdown]
# The device copies and runs, one thing after the other. `put` is its `device_put`: it returns at once, and makes float32 of
# float64. `program` is its `jax.jit`: it builds on the first call, copies what comes in as NumPy on *every* call, and returns
# a tree with one leaf for each number in `run`: how long until that leaf is ready.


# %% nbgrader={"grade": false, "grade_id": "given_device", "locked": true, "schema_version": 3, "solution": false, "task": false}
class Paper:
    """A device on paper. Times are in ms. `drift`: growth of a run by each run. `stumble`: every n-th run takes so much more, from run k on."""

    def __init__(self, copy=60, fetch=35, drift=0.0, stumble=(0, 0, 0), device_kind="paper"):
        self.copy, self.fetch, self.drift, self.stumble = copy, fetch, drift, stumble
        self.device_kind = self.platform = device_kind
        self.now, self.free, self.runs = 0, 0, 0

    def clock(self):
        return self.now

    def put(self, tree):
        return jax.tree.map(self.copied, tree)

    def copied(self, leaf):
        if isinstance(leaf, PaperArray):
            return leaf
        self.free = max(self.now, self.free) + self.copy
        dtype = np.asarray(leaf).dtype
        return PaperArray(self, self.free, np.shape(leaf), FLOAT32 if dtype == "float64" else dtype)


# %% nbgrader={"grade": false, "grade_id": "given_program", "locked": true, "schema_version": 3, "solution": false, "task": false}
def program(device, run=(100,), build=300, enqueue=10):
    """A function compiled for `device`, to be called with any number of inputs."""
    waiting = [build]

    def step(*inputs):
        device.now += enqueue + (waiting.pop() if waiting else 0)
        device.put(inputs)
        device.runs += 1
        every, more, first = device.stumble
        begin = max(device.now, device.free)
        slower, extra = 1 + device.drift * device.runs, more if every and device.runs % every == first else 0
        leaves = [PaperArray(device, begin + ms * slower + extra) for ms in run]
        device.free = max(leaf.ready for leaf in leaves)
        return {"loss": leaves[0], "params": tuple(leaves[1:])}

    return step


# %% [markdown]
# And here is the benchmark as it was found. `old` and `new` are the same function.


# %% nbgrader={"grade": false, "grade_id": "given_symptom", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["for-show"]
def hasty_benchmark(old, new, clock):
    start = clock()
    old().get("loss").block_until_ready()
    old_ms = clock() - start
    new()  # "to be fair, warm it up"
    start = clock()
    new()
    return old_ms / (clock() - start)


device = Paper()
old, new = program(device), program(device)
placed = jax.block_until_ready(device.put(np.ones(3)))
print("new is", hasty_benchmark(lambda: old(placed), lambda: new(placed), device.clock), "times faster than itself")

# %% [markdown]
# ## Task 1 · finished
#
# *4 minutes, and everything rests on it.* `finished(call, clock)` calls `call()`, which takes no argument, and returns how long
# that took by `clock()`, until **every** leaf of the result is ready. It copies nothing from the device.
#
# Look back at [What one call is made of](../course/07_honest_timing/07_honest_timing.ipynb#What-one-call-is-made-of)
# and at [Wait for every leaf](../course/07_honest_timing/07_honest_timing.ipynb#Wait-for-every-leaf).
#
# <details><summary>If a tree has no block_until_ready</summary>
#
# `jax.block_until_ready(tree)` goes through the leaves. A dict has no such method, and one leaf may be ready long before
# another.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "finished", "locked": false, "schema_version": 3, "solution": true, "task": false}
def finished(call, clock=time.perf_counter):
    """Time from before the call until every leaf of its result is ready."""
    ### BEGIN SOLUTION
    start = clock()
    jax.block_until_ready(call())
    return clock() - start
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_finished", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_finished(run, enqueue=10, fetch=35):
    """`finished` on a warm call of a program on paper."""
    device = Paper(fetch=fetch)
    step = program(device, run=run, enqueue=enqueue)
    jax.block_until_ready(step())
    return finished(step, device.clock)


# %% nbgrader={"grade": true, "grade_id": "test_finished", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
got = try_finished(run=(100,))
assert got == 110, f"expected 110: an enqueue of 10 and a run of 100; got {got}. What was finished?"
got = try_finished(run=(20, 90, 50))
assert got == 100, f"expected 100: the slowest of three leaves takes 90; got {got}. Wait for the tree."
print("Task 1: the visible asserts pass. Hidden ones use other costs and other slowest leaves.")

# %% [markdown]
# ## Task 2 · report_line
#
# *6 minutes.* One line of text, in a form that you choose, for a measurement with these inputs (a tree of arrays that have been
# placed) and this number of warm calls. It holds:
#
# Look back at [The report line](../course/07_honest_timing/07_honest_timing.ipynb#The-report-line).
#
# - the `device_kind` of the device that holds the inputs (`leaf.devices()` is a set of devices);
# - the versions of jax and jaxlib (`jax.__version__`, `jax.lib.__version__`);
# - each leaf, written like `float32[5,7]`, and `float32[]` for a scalar;
# - the folder `jax.config.jax_compilation_cache_dir`, or `no cache` where it is not set;
# - the number of calls, and the two sentences `BOUNDARY` and `RULE`.


# %% nbgrader={"grade": false, "grade_id": "report_line", "locked": false, "schema_version": 3, "solution": true, "task": false}
def report_line(placed, calls):
    """The conditions of a measurement, as one line of text."""
    ### BEGIN SOLUTION
    leaves = jax.tree.leaves(placed)
    kinds = sorted({device.device_kind for leaf in leaves for device in leaf.devices()})
    inputs = [f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in leaves]
    versions = f"jax {jax.__version__}, jaxlib {jax.lib.__version__}"
    cache = jax.config.jax_compilation_cache_dir or "no cache"
    parts = [*kinds, versions, *inputs, cache, BOUNDARY, RULE, f"{calls} warm calls"]
    return "; ".join(parts)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_report", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_report(shapes, calls, device_kind="paper", cache=None, dtype="float64"):
    """`report_line` for arrays of these shapes, with this cache folder."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", cache)
    try:
        device = Paper(device_kind=device_kind)
        arrays = {f"in{i}": np.ones(shape, dtype) for i, shape in enumerate(shapes)}
        return report_line(device.put(arrays), calls)
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


# %% nbgrader={"grade": true, "grade_id": "test_report_line", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
line = try_report(shapes=[(3,), (5, 7)], calls=20, device_kind="paper mill")
wanted = ["paper mill", jax.__version__, "float32[3]", "float32[5,7]", "no cache", "20", BOUNDARY, RULE]
missing = [part for part in wanted if part not in line]
assert not missing, f"expected all of {wanted} in the line; {missing} are missing from {line!r}."
line = try_report(shapes=[()], calls=20, cache="some/folder")
assert "float32[]" in line, f"expected float32[] for a scalar; got {line!r}."
assert "some/folder" in line, f"expected the cache folder in the line; got {line!r}."
print("Task 2: the visible asserts pass. Hidden ones use other inputs, devices and folders.")

# %% [markdown]
# ## Task 3 · bench
#
# *10 minutes, the heart of the lab.* `bench(step, inputs, place, clock, calls)` measures `step(*inputs)`. `inputs` is a tuple of
# arrays on the host, `place(inputs)` puts them on the device and returns at once. The result is a dict:
#
# Look back at [Five numbers for one function](../course/07_honest_timing/07_honest_timing.ipynb#Five-numbers-for-one-function)
# and at [Cold and warm](../course/07_honest_timing/07_honest_timing.ipynb#Cold-and-warm).
#
# - `"transfer"`: until the inputs are on the device;
# - `"cold"`: the first call with placed inputs, finished;
# - `"latency"`: the median of `calls` warm calls, each finished before the next;
# - `"throughput"`: warm calls for each unit of time, over `calls` of them that are enqueued without waiting in between;
# - `"report"`: the line for the placed inputs.

# %% [markdown]
# <details><summary>If cold is larger than build, enqueue and run together</summary>
#
# The copy of the inputs was still under way. `place` returns a promise as well: wait for it before the next clock starts.
#
# </details>
#
# <details><summary>If throughput is 1 / latency, or far more</summary>
#
# In a burst nobody waits in between, and somebody waits at the end: for all results, or at least for the last.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "bench", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    """transfer, cold, latency, throughput and report of step(*inputs)."""
    ### BEGIN SOLUTION
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = median(finished(lambda: step(*placed), clock) for _ in range(calls))
    burst = finished(lambda: [step(*placed) for _ in range(calls)], clock)
    return figures | {"throughput": calls / burst, "report": report_line(placed, calls)}
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_bench", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_bench(shapes=((5, 7),), calls=20, copy=60, stumble=(0, 0, 0), **costs):
    """`bench` on a device on paper with these costs, and float64 inputs of these shapes; the runs that it made, of how many arguments."""
    device, arguments = Paper(copy=copy, stumble=stumble), set()
    inputs, run = tuple(np.ones(shape) for shape in shapes), program(device, **costs)

    def step(*arrays):
        arguments.add(len(arrays))
        return run(*arrays)

    figures = bench(step, inputs, place=device.put, clock=device.clock, calls=calls)
    return figures | {"runs": device.runs, "arguments": sorted(arguments)}


def bars(figures):
    """The four times of a bench on paper, side by side."""
    times = {name: figures[name] for name in ("transfer", "cold", "latency")}
    for name, ms in (times | {"one call in": 1 / figures["throughput"]}).items():
        print(f"{name:12} {'#' * round(ms / 10):42} {ms:.1f} ms")


# %% nbgrader={"grade": true, "grade_id": "test_bench", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
got = try_bench()
for name, ms in {"transfer": 60, "cold": 410, "latency": 110}.items():
    assert got[name] == ms, f"expected {name} = {ms}; got {got[name]}. What is inside that span?"
expected = 20 / 2010
near = abs(got["throughput"] - expected) < 0.02 * expected
assert near, f"expected 20 calls in 2010 ms, {expected:.5f} a ms; got {got['throughput']:.5f}."
assert "float32[5,7]" in got["report"], f"expected the placed inputs in the report; got {got['report']!r}."
bars(got)
print("Task 3: the visible asserts pass. Hidden ones use other costs, more inputs and calls that stumble.")

# %% [markdown]
# ## Task 4 · compare
#
# *6 minutes.* `compare(a, b, clock, rounds)` returns how many times longer a call of `b` takes than a call of `a` (2.0: twice as
# long), measured in this number of rounds. Both take no argument. The machine drifts, and now and then a call stumbles; the ratio
# should not care.
#
# Look back at [Numbers that hold](../course/07_honest_timing/07_honest_timing.ipynb#Numbers-that-hold).
#
# <details><summary>If a drift gets into the ratio</summary>
#
# All of `a` and then all of `b` measures `b` on another machine. Take them in turn; each round gives one ratio.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "compare", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compare(a, b, clock=time.perf_counter, rounds=21):
    """How many times longer a warm, finished call of b takes than one of a."""
    ### BEGIN SOLUTION
    for arm in (a, b):
        finished(arm, clock)
    ratios = []
    for _ in range(rounds):
        first = finished(a, clock)
        ratios.append(finished(b, clock) / first)
    return median(ratios)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_compare", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_compare(run_a, run_b, rounds=21, drift=0.0, stumble=(0, 0, 0), build_b=300):
    """`compare` of two programs on one device on paper."""
    device = Paper(drift=drift, stumble=stumble)
    a, b = program(device, run=run_a), program(device, run=run_b, build=build_b)
    return compare(a, b, device.clock, rounds)


def runs_of_compare(rounds):
    """How many calls `compare` makes for this number of rounds."""
    device = Paper()
    compare(program(device), program(device), device.clock, rounds)
    return device.runs


# %% nbgrader={"grade": true, "grade_id": "test_compare", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
got = try_compare((90,), (190,))
assert abs(got - 2) < 0.01, f"expected 2.0: 200 ms against 100 ms; got {got}."
got = try_compare((90,), (90,), drift=0.02)
assert abs(got - 1) < 0.05, f"expected about 1.0 for equal arms on a device that drifts; got {got}."
few, many = runs_of_compare(5), runs_of_compare(40)
assert many > few, f"expected more calls in 40 rounds than in 5; got {many} and {few}."
print("Task 4: the visible asserts pass. Hidden ones use other arms, drifts and stumbles.")

# %% [markdown]
# ## Task 5 · agree
#
# *5 minutes.* Before two arms are compared, their answers are. `agree(a, b, rtol)` is True if the trees have the same structure,
# and leaf by leaf the same shape, the same dtype, and a largest difference of at most `rtol` times the largest magnitude in `a`'s
# leaf. The leaves are NumPy or JAX arrays of floats, and NaN agrees with nothing, not with NaN either. Eager and compiled results agree in this sense; they are not equal bit by
# bit.
#
# Look back at [The same answer, and where the time goes](../course/07_honest_timing/07_honest_timing.ipynb#The-same-answer,-and-where-the-time-goes).
#
# <details><summary>If float64 against float32 is accepted</summary>
#
# `jnp` functions make float32 of both before you compare. Look at the dtypes of what came in.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "agree", "locked": false, "schema_version": 3, "solution": true, "task": false}
def agree(a, b, rtol=1e-5):
    """Whether two results can stand for one another."""
    ### BEGIN SOLUTION
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        left, right = np.asarray(left), np.asarray(right)
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            return False
        if not np.max(np.abs(left - right)) <= rtol * np.max(np.abs(left)):
            return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_agree", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
one = {"w": np.array([1.0, -2.0], "float32"), "b": np.array([0.5], "float32")}
nearly = {"w": one["w"] + np.float32(2e-7), "b": one["b"]}
assert agree(one, nearly), "expected a difference of one rounding to be accepted. Bits are not the question."
for name, other in {
    "another b": one | {"b": one["b"] + np.float32(0.01)},
    "float64": jax.tree.map(np.float64, one),
    "no b": {"w": one["w"]},
}.items():
    assert not agree(one, other), f"expected False for {name}; got True."
print("Task 5: the visible asserts pass. Hidden ones use other trees, shapes and differences.")

# %% [markdown]
# ## Task 6 · peaks
#
# *5 minutes.* `start()` starts a process and returns it. `process.run(arm)` runs an arm in it, and `process.peak_mb` is the
# highest memory that this process ever had. `peaks(arms, start)` gets a dict of arms by name and returns a dict by name: the MB
# that each arm adds to the peak of a process that has just started.
#
# Look back at [A peak, and only one](../course/07_honest_timing/07_honest_timing.ipynb#A-peak,-and-only-one).


# %% nbgrader={"grade": false, "grade_id": "peaks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def peaks(arms, start):
    """MB that each arm needs above the start of its process, by name."""
    ### BEGIN SOLUTION
    needed = {}
    for name, arm in arms.items():
        process = start()
        before = process.peak_mb
        process.run(arm)
        needed[name] = process.peak_mb - before
    return needed
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_peaks", "locked": true, "schema_version": 3, "solution": false, "task": false}
class PaperProcess:
    """A process on paper. An arm is the number of MB that it takes. A tenth of it stays: programs, caches."""

    def __init__(self, start_mb):
        self.held_mb = self.peak_mb = start_mb

    def run(self, arm):
        self.peak_mb = max(self.peak_mb, self.held_mb + arm)
        self.held_mb += arm / 10


def try_peaks(arms, start_mb):
    """`peaks` with processes that start at these MB, one after the other (and then from the first again)."""
    turns = [start_mb[i % len(start_mb)] for i in range(100)]
    return peaks(arms, lambda: PaperProcess(turns.pop(0)))


# %% nbgrader={"grade": true, "grade_id": "test_peaks", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
got = try_peaks({"whole": 150, "blocks": 4}, start_mb=[200, 230])
expected = {"whole": 150, "blocks": 4}
assert got == expected, f"expected {expected}; got {got}. Whose peak is it, and where did it start?"
print("Task 6: the visible asserts pass. Hidden ones use other arms, orders and starts.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - What your functions return on a device on paper with other costs of build, enqueue, run, copy and fetch.
# - Results with several leaves, of which any may be the slowest.
# - Calls that stumble, in both directions, and a device that drifts.
# - What the report line holds for other inputs, devices and cache folders.
# - Answers that differ by rounding, in one leaf, in dtype and in shape.
# - Processes that start at different sizes.

# %% [markdown]
# ## Going further
#
# - Your functions take a real clock by default. Make a new cell and measure a real step:
#   `bench(jax.jit(lambda a, b: (a @ b).sum()), (np.ones((512, 512)), np.ones((512, 512))))`. Which of the figures is the
#   largest, and does the report say why?
# - `compare` a function with itself on the real device, ten times. How far from 1 does the ratio get? That is the error of
#   every speed-up that you report from this machine.
# - Write a `start` for `peaks` whose processes are real: `traceonce.sandbox.run_capped` starts one and knows its peak.
