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
# ---

# %% [markdown]
# # 07 · Measure finished work
#
# A number of seconds says nothing until you know what was finished when the clock stopped. After this lesson you can tell
# five different times of one function apart, compare two versions so that the ratio holds, and say in one line what you
# measured.
#
# About 60 minutes.

# %% [markdown]
# ## Question
#
# Two people time the same function on the same machine. It trains the model of lesson 01 for twenty thousand steps, in one
# compiled program, on the four rows 256 times over. A takes the best of seven calls. B takes one call and waits for its
# numbers.

# %%
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from traceonce import plan, predict, watch

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])
xs, ys = jnp.tile(x, (256, 1)), jnp.tile(y, 256)
zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}


def mse(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


# %%
def step(params, x, y):
    grads = jax.grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads)


@jax.jit
def train(params, x, y):
    """Twenty thousand steps, each of which needs the one before."""
    return jax.lax.scan(lambda params, _: (step(params, x, y), None), params, length=20_000)[0]


# %%
def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


b_says = seconds(lambda: jax.block_until_ready(train(zero, xs, ys)))
a_says = min(seconds(lambda: train(zero, xs, ys)) for _ in range(7))
print("they differ by more than 100 times:", b_says > 100 * a_says)

# %% [markdown]
# Both were careful: A repeated and took the best, B waited. Neither number is the time of a training run. What did each of
# them measure?

# %% [markdown]
# ## Before you run
#
# A JAX call on an accelerator, and on a CPU too, hands the work over and comes back. `is_ready()` asks an array whether its
# numbers exist yet, without waiting for them. Another call, then; it returns; and the next line asks.

# %%
question = "trained = train(zero, xs, ys) has returned. What does trained['w'].is_ready() say?"
guess = predict("07-H1", question, [True, False])

# %% [markdown]
# ## What one call is made of

# %% claims=["H1"]
jax.block_until_ready(train(zero, xs, ys))  # whatever was still queued is done
trained = train(zero, xs, ys)
at_once = trained["w"].is_ready()
jax.block_until_ready(trained)
print("after waiting:", trained["w"].is_ready(), np.round(trained["w"], 2).tolist())
guess.reveal(at_once)

# %% [markdown]
# This is **asynchronous dispatch**. The call enqueues the program and returns an array that is a promise: shape and dtype
# are known, the numbers are on their way. A measured the enqueueing, seven times, with care
# ([2019](https://github.com/jax-ml/jax/issues/1219)). Side by side:

# %% claims=["H1"]
enqueued, finished = [], []
for _ in range(7):
    start = time.perf_counter()
    out = train(zero, xs, ys)
    enqueued.append(time.perf_counter() - start)
    jax.block_until_ready(out)
    finished.append(time.perf_counter() - start)
print("finished takes over 10 times the enqueue:", min(finished) > 10 * min(enqueued))

# %% [markdown]
# Why not the four rows alone? Because a CPU runs the smallest programs on the spot, before the call returns. Whoever tries out
# a timing harness on a toy, on a laptop, does not see what it forgets.

# %% claims=["H1"]
jax.block_until_ready(train(zero, x, y))
ready = train(zero, x, y)["w"].is_ready()
print("ready at once on a CPU, and only there:", ready == (jax.default_backend() == "cpu"))

# %% [markdown]
# The cost does not vanish, it moves to whoever looks first. In a notebook that is the line that prints, and the cell with
# the computation seems to take no time at all ([2019](https://github.com/jax-ml/jax/issues/802)). Hence: never trust the
# time of a cell whose last line shows an array.

# %% claims=["H1"]
out = train(zero, xs, ys)
ready = out["w"].is_ready()
text = str(out["w"])
print("ready before it is printed:", ready, " after:", out["w"].is_ready())

# %% [markdown]
# ### Wait for every leaf
#
# A result is a tree. `jax.block_until_ready(tree)` waits for all its leaves and ignores what is no array; a single array has
# the method `.block_until_ready()`. Is one leaf enough? Here two programs are enqueued, a quick one and a slow one, and the
# code waits for the quick one.

# %%
quick = jax.jit(mse)
_ = quick(zero, x, y).block_until_ready()

# %%
question = "The quick leaf has been awaited. Is the slow one ready?"
guess = predict("07-H1b", question, [True, False])

# %% claims=["H1"]
results = {"loss": quick(zero, x, y), "params": train(zero, xs, ys)}
results["loss"].block_until_ready()
ready = results["params"]["w"].is_ready()
jax.block_until_ready(results)
print("after jax.block_until_ready(results):", results["params"]["w"].is_ready())
guess.reveal(ready)

# %% claims=["H1"]
out = train(zero, xs, ys)
out["b"].block_until_ready()
print("the other leaf of ONE program:", out["w"].is_ready())

# %% [markdown]
# The leaves of one program come together; the leaves of several come when they come. Whoever waits for the last leaf is
# right until somebody adds a leaf. Wait for the tree.

# %% [markdown]
# ### A device on paper
#
# Real clocks differ from run to run, so here is a device whose times you can add up in your head. It has two lanes. The
# *host* builds (once), enqueues and waits. The *device* copies and runs, one thing after the other. Its clock moves only
# when the host works or waits.


# %%
class Paper:
    """A device on paper. Times are in ms."""

    def __init__(self, build=300, enqueue=10, run=100, copy=60, drift=0):
        self.build, self.enqueue, self.run, self.copy, self.drift = build, enqueue, run, copy, drift
        self.now, self.free, self.spans = 0, 0, []

    def host(self, what, ms):
        self.spans.append(("host", what, self.now, self.now + ms))
        self.now += ms

    def queue(self, what, ms):
        begin = max(self.now, self.free)
        self.free = begin + ms
        self.spans.append(("device", what, begin, self.free))
        return Promise(self, self.free)


# %% [markdown]
# A `Promise` is what a call returns, and `paper_train` is a jitted function on that device. It builds on its first call. What
# lies on the host it copies first, as JAX does with NumPy arrays, on *each* call.


# %%
class Promise:
    def __init__(self, device, ready):
        self.device, self.ready = device, ready

    def block_until_ready(self):
        self.device.host("wait", max(0, self.ready - self.device.now))
        return self


def paper_train(device, inputs="placed"):
    device.host("build", device.build)
    device.build = 0
    device.host("enqueue", device.enqueue)
    if inputs == "on the host":
        device.queue("copy", device.copy)
    device.run += device.drift
    return device.queue("run", device.run)


# %%
device = Paper()


def paper_ms(call):
    start = device.now
    call()
    return device.now - start


cold = paper_ms(lambda: paper_train(device).block_until_ready())
a_says = paper_ms(lambda: paper_train(device))
device.now = device.free  # let the queue run empty
print("cold and finished:", cold, " warm and enqueued:", a_says)

# %% [markdown]
# 410 against 10, and one honest call of this function takes 110. B's number contains the build, A's contains no run.

# %% [markdown]
# ### Cold and warm
#
# A **cold** call contains what happens once: trace, lowering, compile. A **warm** one does not. Take one step on four rows.

# %%
choices = ["about 2", "about 10", "over 50"]
guess = predict("07-H2", "How many times longer is its first call than a later one?", choices)

# %%
four_rows = watch(jax.jit(step))
cold_step = seconds(lambda: jax.block_until_ready(four_rows(zero, x, y)))
warm_steps = [seconds(lambda: jax.block_until_ready(four_rows(zero, x, y))) for _ in range(21)]

# %% claims=["H2"]
c = four_rows.counts
print("traces:", c.traces, " lowerings:", c.lowerings, " compiles:", c.compiles, " calls:", c.calls)
stages = c.trace_seconds + c.lower_seconds + c.compile_seconds
print("the three stages are most of cold:", stages > 0.5 * cold_step)
ratio = float(cold_step / np.median(warm_steps))
guess.reveal(choices[(ratio > 5) + (ratio > 50)])

# %% [markdown]
# To see factors of a thousand you need a logarithmic axis: one grid line is ten times the one before. `picture` draws such
# bars. Figures differ on your machine; what should be alike is the order.

# %%
from html import escape
from math import ceil, floor, log10

from IPython.display import SVG, display


def written(s):
    size = next(unit for unit in (1, 1e-3, 1e-6, 1e-9) if s >= unit or unit == 1e-9)
    return f"{s / size:.3g} {dict(zip((1, 1e-3, 1e-6, 1e-9), ('s', 'ms', 'µs', 'ns'), strict=True))[size]}"


# %%
TEXT = '<text x="{}" y="{}" font-size="13" font-family="sans-serif" fill="#1f2328" text-anchor="{}">{}</text>'


def svg(width, height, about, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    paper = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    display(SVG("".join([head, f"<title>{escape(about)}</title>", paper, *parts, "</svg>"])))


# %%
def picture(title, bars):
    """Seconds as bars on a logarithmic axis."""
    low, high = floor(log10(min(bars.values()))), ceil(log10(max(bars.values())))
    x_of = lambda s: 240 + 320 * (log10(s) - low) / max(1, high - low)
    bottom = 40 + 24 * len(bars)
    parts = [TEXT.format(8, 18, "start", escape(title))]
    for power in range(low, high + 1):
        at = x_of(10.0**power)
        parts.append(f'<path d="M{at} 28V{bottom}" stroke="#d0d7de"/>')
        parts.append(TEXT.format(at, bottom + 16, "middle", written(10.0**power)))
    for row, (name, s) in enumerate(bars.items()):
        top = 32 + 24 * row
        parts.append(f'<rect x="240" y="{top}" width="{max(1, x_of(s) - 240)}" height="16" fill="#57606a"/>')
        parts.append(TEXT.format(232, top + 13, "end", escape(name)))
        parts.append(TEXT.format(x_of(s) + 6, top + 13, "start", written(s)))
    about = "; ".join(f"{name}: {written(s)}" for name, s in bars.items())
    svg(660, bottom + 28, f"{title}. {about}", parts)


# %% tags=["nbval-ignore-output"] ignored="seconds differ from run to run"
parts_of_cold = {"trace": c.trace_seconds, "lower": c.lower_seconds, "compile": c.compile_seconds}
beside = {"the cold call": cold_step, "a warm call": np.median(warm_steps)}
picture("One step on four rows", parts_of_cold | beside)

# %% [markdown]
# "Cold" is not one number either. A new *process* imports JAX and starts a backend as well, and the persistent cache of
# lesson 05 takes the compile away from the second one. The child below reports on its first call. It is started twice, with
# one cache folder.

# %%
COLD = """
import json, sys, time, jax, jax.numpy as jnp
from traceonce import watch
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
def deep(w, x):
    for _ in range(12):
        x = jnp.tanh(x @ w) + jnp.sin(x)
    return jnp.sum(x)
w, x = jnp.eye(8), jnp.ones((4, 8))
f = watch(jax.jit(jax.value_and_grad(deep)))
start = time.perf_counter()
jax.block_until_ready(f(w, x))
took, c = time.perf_counter() - start, f.counts
print(json.dumps({"took": took, "compile": c.compile_seconds, "traces": c.traces, "hits": c.cache_hits}))
"""

# %%
import json
import os
import subprocess
import sys
import tempfile


def cold_start(folder):
    settings = os.environ | {"JAX_PLATFORMS": "cpu"}  # the child leaves a GPU to this process
    command = [sys.executable, "-c", COLD, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
    return json.loads(done.stdout)


# %%
question = "The second process finds its program on disk. Which stage is left of its cold call?"
stages_left = ["none", "trace and lowering, and a short fetch", "all three, as before"]
guess = predict("07-H2b", question, stages_left)

# %% claims=["H2"]
with tempfile.TemporaryDirectory() as folder:
    first, second = cold_start(folder), cold_start(folder)
for run in (first, second):
    print("traces:", run["traces"], " hits:", run["hits"])
print("compile stage under half:", second["compile"] < first["compile"] / 2)
print("cold call is shorter:", second["took"] < first["took"])
guess.reveal(stages_left[1 if second["traces"] and second["hits"] else 2])

# %% [markdown]
# So a cold figure without its **cache policy** is not a figure. On a fresh machine, in a container that is thrown away, or
# after a change of a constant, the first number is the true one.

# %% [markdown]
# ## Five numbers for one function
#
# Back to paper, warm. Ten calls do not depend on each other. One person waits for each before making the next. Another
# enqueues all ten and waits once. An enqueue takes 10, a run 100.

# %%
question = "Ten calls, enqueued one after the other, one wait at the end: how many ms?"
guess = predict("07-H3", question, [1000, 1010, 1100])

# %% claims=["H3"]
device = Paper(build=0)
each = paper_ms(lambda: [paper_train(device).block_until_ready() for _ in range(10)])
once = paper_ms(lambda: [paper_train(device) for _ in range(10)][-1].block_until_ready())
print("latency of a call:", each / 10, " one call in every:", once / 10)
guess.reveal(once)

# %% [markdown]
# Both numbers are honest, and they have different names. **Latency**: how long one caller waits, 110. **Throughput**: how
# many are done in a time, one per 101, because the host enqueues the next while the device runs. A robot needs the first, a
# training loop the second. (On a device that does one thing after the other, the last result comes last.)

# %% [markdown]
# The other way to throughput is a wider call. Here is the real step, on the four rows and on the four rows repeated to a
# quarter of a million. What does one *row* cost?


# %%
def finished_seconds(call, turns=15):
    """Seconds of each of `turns` calls, to the last leaf, after one that does not count."""
    jax.block_until_ready(call())
    return [seconds(lambda: jax.block_until_ready(call())) for _ in range(turns)]


# %%
many_x, many_y = jnp.tile(x, (65_536, 1)), jnp.tile(y, 65_536)
one_step = jax.jit(step)
narrow = np.median(finished_seconds(lambda: one_step(zero, x, y))) / len(x)
wide = np.median(finished_seconds(lambda: one_step(zero, many_x, many_y))) / len(many_x)

# %% claims=["H3"]
print("rows:", len(x), "and", len(many_x))
print("a row of the wide call costs under a tenth:", wide < narrow / 10)
print("the wide call has the longer latency:", wide * len(many_x) > narrow * len(x))

# %% [markdown]
# On four rows you measure the *call*: Python, the lookup of lesson 05, the enqueue. A benchmark on toy shapes is a benchmark
# of that. Nothing wrong with it, if that is what you ship.

# %% [markdown]
# ### What crosses the boundary
#
# Where were the data when the clock started? Here is a batch as NumPy makes it, in float64. `device_put` makes of it what a
# compiled function would make of it. How many bytes arrive?

# %%
host_x = np.tile(np.asarray(x, "float64"), (65_536, 1))
host_y = np.tile(np.asarray(y, "float64"), 65_536)
question = f"host_x has {host_x.nbytes} bytes. How many has jax.device_put(host_x)?"
guess = predict("07-H4", question, [host_x.nbytes // 2, host_x.nbytes])

# %% claims=["H4"]
placed_x, placed_y = jax.block_until_ready(jax.device_put((host_x, host_y)))
print(host_x.dtype, "->", placed_x.dtype)
guess.reveal(placed_x.nbytes)

# %% [markdown]
# Half: JAX computes in float32 unless told otherwise. So "NumPy against JAX" compares double with single precision, and half
# of such a speed-up is a change of the problem. Give both arms the same dtype, and check it:

# %% claims=["H4"]
loss = jax.jit(mse)
for name, a, b in (("float64", host_x, host_y), ("float32", host_x.astype("float32"), host_y.astype("float32"))):
    by_numpy = np.mean((a @ np.zeros(2, a.dtype) - b) ** 2)
    print(f"NumPy in {name}: computes in {by_numpy.dtype}, reads {a.nbytes + b.nbytes} bytes")
print("JAX, given float64:", loss(zero, host_x, host_y).dtype)

# %% [markdown]
# A NumPy array as an argument is converted and copied on *every* call, inside your span, in silence. `jax.transfer_guard`
# makes it loud: what would be copied implicitly raises. Use it once around the timed call, and you know where the boundary
# is.


# %% claims=["H4"]
def crosses(call):
    try:
        with jax.transfer_guard("disallow"):
            jax.block_until_ready(call())
    except jax.errors.JaxRuntimeError as error:
        return str(error).split(": ")[1].split(" ")[1]
    return "nothing"


print("NumPy in each call:", crosses(lambda: one_step(zero, host_x, host_y)))
print("placed beforehand: ", crosses(lambda: one_step(zero, placed_x, placed_y)))

# %% [markdown]
# The way back counts as well: `float(loss)`, `np.asarray(out)` and `print(out)` wait *and* copy. The guard does not see that on
# a CPU, where the numbers lie in the same memory ([2023](https://github.com/jax-ml/jax/issues/16602)). To wait, use
# `block_until_ready`, which copies nothing.

# %% claims=["H4"]
silent = crosses(lambda: float(loss(zero, placed_x, placed_y))) == "nothing"
print("float(loss) gets through on a CPU, and only there:", silent == (jax.default_backend() == "cpu"))

# %% [markdown]
# Now all of it in one picture, on paper first. The data start on the host; they are placed; a cold call; a warm one; three
# more in a row. The lower rows are the spans that people call "the time".


# %%
FILL = {"wait": "none", "copy": "#d0d7de", "run": "#afb8c1", "build": "#d0d7de", "enqueue": "#57606a"}
SCALE = 0.66  # pixels for a ms


def boxes(device):
    """The host's and the device's lane."""
    for lane, what, begin, end in device.spans:
        left, width, top = 80 + begin * SCALE, (end - begin) * SCALE, {"host": 16, "device": 50}[lane]
        if width:
            size = f'x="{left:.1f}" y="{top}" width="{width:.1f}" height="24"'
            yield f'<rect {size} fill="{FILL[what]}" stroke="#1f2328"/>'
        if width > 30:
            yield TEXT.format(round(left + width / 2, 1), top + 17, "middle", what)


# %%
def lanes(device, spans):
    """Both lanes, and below them named spans from begin to end."""
    parts = [*boxes(device), TEXT.format(4, 33, "start", "host"), TEXT.format(4, 67, "start", "device")]
    for row, (name, (begin, end)) in enumerate(spans.items()):
        left, right, at = 80 + begin * SCALE, 80 + end * SCALE, 98 + 26 * row
        parts.append(f'<path d="M{left:.1f} {at - 6}v12m0 -6H{right:.1f}m0 -6v12" stroke="#1f2328"/>')
        parts.append(TEXT.format(4, at + 5, "start", name))
        parts.append(TEXT.format(round(right + 8, 1), at + 5, "start", f"{end - begin} ms"))
    about = ", ".join(f"{name} {end - begin} ms" for name, (begin, end) in spans.items())
    svg(760, 90 + 26 * len(spans), f"Lanes of host and device, with spans: {about}", parts)


# %% claims=["H3", "H4"]
device, spans = Paper(), {}


def span(name, call):
    begin = device.now
    call()
    spans[name] = (begin, device.now)


span("transfer", lambda: device.queue("copy", device.copy).block_until_ready())
span("cold", lambda: paper_train(device).block_until_ready())
span("latency", lambda: paper_train(device).block_until_ready())
span("three calls", lambda: [paper_train(device) for _ in range(3)][-1].block_until_ready())
begin = spans["latency"][0]
spans["enqueue"] = (begin, begin + device.enqueue)
lanes(device, spans)
print({name: end - begin for name, (begin, end) in spans.items()})

# %% [markdown]
# And the same five on your machine, for the step on a quarter of a million rows. The last bar is what you get if the data stay
# in NumPy: a "latency" with a conversion and a transfer in it.

# %%
fresh = jax.jit(lambda params, x, y: step(params, x, y))
five = {
    "transfer": np.median(finished_seconds(lambda: jax.device_put((host_x, host_y)))),
    "cold": seconds(lambda: jax.block_until_ready(fresh(zero, placed_x, placed_y))),
    "enqueue": np.median([seconds(lambda: fresh(zero, placed_x, placed_y)) for _ in range(15)]),
    "latency": np.median(finished_seconds(lambda: fresh(zero, placed_x, placed_y))),
}

# %%
fifteen = seconds(lambda: jax.block_until_ready([fresh(zero, placed_x, placed_y) for _ in range(15)]))
five["throughput: one call in"] = fifteen / 15
five["latency with NumPy inputs"] = np.median(finished_seconds(lambda: fresh(zero, host_x, host_y)))

# %% tags=["nbval-ignore-output"] ignored="seconds differ from run to run"
picture("One step on 262 144 rows", five)

# %% [markdown]
# ## Numbers that hold
#
# A machine has other users, a chip gets warm, a notebook collects garbage. On paper: a device on which each run takes 1 ms
# longer than the run before. The *same* function is measured as A, twenty times, and then as B, twenty times.

# %%
question = "A and B are the same function. Which ratio B / A do the two blocks report?"
guess = predict("07-H5", question, ["1.00", "1.17", "2.00"])

# %% claims=["H5"]
device = Paper(build=0, drift=1)
call = lambda: paper_ms(lambda: paper_train(device).block_until_ready())
a, b = [call() for _ in range(20)], [call() for _ in range(20)]
guess.reveal(f"{np.median(b) / np.median(a):.2f}")

device = Paper(build=0, drift=1)
pairs = [(call(), call()) for _ in range(20)]
print(f"in turn, A B A B ...: {np.median([b / a for a, b in pairs]):.2f}")

# %% [markdown]
# The drift is in both members of a **pair**, and the ratio of a pair cancels it. So: both arms in one process, warm, in turn,
# a ratio for each pair, the median of the ratios. And the best test of the whole arrangement is **A against A**: what it
# reports there is its error.


# %%
def ratios(a, b, turns=31):
    """b's time over a's, pair by pair."""
    for arm in (a, b):
        jax.block_until_ready(arm())
    timed = lambda arm: seconds(lambda: jax.block_until_ready(arm()))
    return [(lambda first: timed(b) / first)(timed(a)) for _ in range(turns)]


# %%
same = ratios(lambda: train(zero, xs, ys), lambda: train(zero, xs, ys), turns=7)
thrice = lambda: train(train(train(zero, xs, ys), xs, ys), xs, ys)
triple = ratios(lambda: train(zero, xs, ys), thrice, turns=5)

# %% claims=["H5"]
print("A against A, the median is within 0.5 and 2:", 0.5 < np.median(same) < 2)
print("the work against three times the work, within 1.5 and 6:", 1.5 < np.median(triple) < 6)

# %% [markdown]
# Why the median? Let one call in twenty-one meet something that has nothing to do with it; here it is a nap of 0.2 s.


# %%
def disturbed(turn):
    jax.block_until_ready(one_step(zero, x, y))
    time.sleep(0.2 * (turn == 7))


# %% claims=["H5"]
samples = [seconds(partial(disturbed, turn)) for turn in range(21)]
low, middle, high = np.percentile(samples, [25, 50, 75])
print("the mean is over 5 times the median:", np.mean(samples) > 5 * middle)
print("the middle half reaches up to the nap:", bool(high > 0.2))

# %% [markdown]
# Report the median with its **spread**, the middle half (25 % to 75 %). The minimum has its place too, for the cost of the
# code itself, but a minimum hides what users see. Whichever you take, say so.

# %% [markdown]
# ### The report line
#
# Half of what is wrong with benchmarks is not in them. A figure travels with its conditions: device, versions, dtypes and
# shapes, cache policy, where the inputs were, what was waited for, how many calls.


# %%
def report_line(inputs, calls):
    """The conditions of a measurement, in one line."""
    leaves = jax.tree.leaves(inputs)
    kinds = sorted({device.device_kind for leaf in leaves for device in leaf.devices()})
    return {
        "device": ", ".join(kinds),
        "versions": f"jax {jax.__version__}, jaxlib {jax.lib.__version__}",
        "inputs": ", ".join(str(jax.typeof(leaf)) for leaf in leaves),
        "cache": jax.config.jax_compilation_cache_dir or "none on disk",
        "boundary": "inputs placed before, results left on the device",
        "waited for": "every leaf",
        "figure": f"median of {calls} warm calls",
    }


# %% claims=["H6"]
line = report_line((zero, placed_x, placed_y), calls=15)
print("fields:", ", ".join(line))
print("inputs:", line["inputs"])
print("if they had stayed in NumPy:", host_x.dtype, host_x.shape)

# %% tags=["nbval-ignore-output"] ignored="it names the device and the versions of the machine"
print("; ".join(f"{name}: {value}" for name, value in line.items()))

# %% [markdown]
# Each field has changed somebody's result by a factor. Take the dtype away, and nobody can see that one arm was in double
# precision; take the boundary away, and a copy of 6 MB becomes part of a step.

# %% [markdown]
# ## A peak, and only one
#
# Memory is measured in the same spirit, and has a trap of its own. Two ways to add up a table of 6144 × 6144 numbers: the
# whole table at once, or 64 rows at a time. First the plan: bytes that the compiler asks for.


# %%
def whole(a, m):
    return jnp.sum((jnp.tanh(a[:, None] * a[None, :]) @ m) ** 2, axis=1)


def blocks(a, m):
    return jax.lax.map(lambda v: jnp.sum((jnp.tanh(v * a) @ m) ** 2), a, batch_size=64)


# %%
a, m = jnp.linspace(-1, 1, 6144), jnp.ones((6144, 8))
planned = plan.compare(whole=(whole, a, m), blocks=(blocks, a, m))
print("temporaries of whole are over 20 times those of blocks:", end=" ")
print(planned["whole"].temporaries > 20 * planned["blocks"].temporaries)

# %% [markdown]
# Then the measurement. A process remembers the highest memory that it ever had, its **high-water mark**. The child runs the
# arms that it is told, in order, and prints its mark after each.

# %%
ARMS = """
import inspect, json, resource, sys
from pathlib import Path
import jax, jax.numpy as jnp
def peak_mb():
    status = Path("/proc/self/status")
    if status.exists():  # Linux
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
a, m = jax.block_until_ready((jnp.linspace(-1, 1, 6144), jnp.ones((6144, 8))))
marks = {"start": peak_mb()}
for arm in ORDER:
    jax.block_until_ready(jax.jit(arm)(a, m))
    marks[arm.__name__] = peak_mb()
print(json.dumps(marks))
"""

# %%
import inspect

from traceonce.sandbox import run_capped


def marks_of(*order):
    """High-water marks in MB of one new process that runs these arms."""
    functions = inspect.getsource(whole) + inspect.getsource(blocks)
    names = f"ORDER = [{', '.join(arm.__name__ for arm in order)}]\n"
    program = "import jax, jax.numpy as jnp\n" + functions + names + ARMS
    ending = run_capped(program, memory_mb=1500, environment={"JAX_PLATFORMS": "cpu"})
    return json.loads(ending.stdout) | {"seen from outside": ending.peak_mb}


# %%
together = marks_of(whole, blocks)

# %%
question = "One process ran whole, then blocks. How do the two marks compare?"
choices = ["blocks is lower", "the same", "blocks is higher"]
guess = predict("07-H7", question, choices)

# %% claims=["H7"]
difference = together["blocks"] - together["whole"]
guess.reveal(choices[1 + (difference > 20) - (difference < -20)])

# %% [markdown]
# A high-water mark does not fall. Whatever runs second inherits the peak of the first, and the comparison says "equal". Two
# arms need two processes, and so does every other maximum of this kind: `peak_bytes_in_use` of a GPU's allocator is the mark
# of a process as well.

# %% claims=["H7"]
alone = marks_of(blocks)  # whole was the first in its process, so its mark is its own
of_whole, of_blocks = together["whole"] - together["start"], alone["blocks"] - alone["start"]
print("whole needs over 60 MB more than its start:", of_whole > 60)
print("blocks needs under half of that:", of_blocks < of_whole / 2)
print("seen from outside, whole is higher:", together["seen from outside"] > alone["seen from outside"])

# %% [markdown]
# Subtract the start: Python and JAX alone take some hundred MB, and a ratio of the raw marks would drown in them. And mind
# the source. On Linux `ru_maxrss` survives the start of a program, so a child reports the peak of its *parent*:

# %% claims=["H7"]
EMPTY = """
import resource
from pathlib import Path
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
"""
if sys.platform == "linux":
    said = subprocess.run([sys.executable, "-c", EMPTY], capture_output=True, text=True, check=True).stdout
    inherited, own = map(int, said.split())
    print("an empty child reports more than 5 times its own peak:", inherited > 5 * own)

# %% [markdown]
# ### Measure what ships
#
# A model can be *passed* to the compiled function or *closed over*. The answers are equal. Are the programs?

# %%
rng = np.random.default_rng(7)
normal = lambda *shape: jnp.asarray(rng.normal(size=shape), "float32")
matrix, rows = normal(512, 512), normal(8, 512)
apply = lambda matrix, rows: jnp.tanh(rows @ matrix)
closed = lambda rows: apply(matrix, rows)

# %%
question = "matrix has 1 048 576 bytes. Does the plan of `closed` count them?"
choices = ["as arguments", "as temporaries", "nowhere"]
guess = predict("07-H8", question, choices)

# %% claims=["H8"]
both = plan.compare(passed=(apply, matrix, rows), closed=(closed, rows))
for name in ("passed", "closed"):
    print(f"{name:7} arguments {both[name].arguments:>9,}")
counted = [both["closed"].arguments, both["closed"].temporaries, matrix.nbytes]
guess.reveal(choices[next(i for i, size in enumerate(counted) if size >= matrix.nbytes)])

# %% [markdown]
# The weights have become a constant *inside* the executable. The plan does not see them, and the memory is needed all the
# same: once more for each program that was compiled, beside the array itself. The serialized program shows where they went.


# %%
def size_of(function, *args):
    return len(jax.jit(function).lower(*args).compile().runtime_executable().serialize())


# %% claims=["H8"]
print("passed: the program is larger than the weights:", size_of(apply, matrix, rows) > matrix.nbytes)
print("closed: the program is larger than the weights:", size_of(closed, rows) > matrix.nbytes)

# %% [markdown]
# And a constant is something to compute with at compile time. Here the model multiplies its weights with their own transpose
# before it uses them. Closed over, that product is done by the compiler, once, and your benchmark times what is left.


# %%
def through_gram(matrix, rows):
    return rows @ (matrix @ matrix.T)


def flops(function, *args):
    return jax.jit(function).lower(*args).compile().cost_analysis()["flops"]


# %% claims=["H8"]
small, few = matrix[:64, :64], rows[:, :64]
work = {"passed": flops(through_gram, small, few), "closed": flops(lambda few: through_gram(small, few), few)}
print("the passed program does over 4 times the work:", work["passed"] > 4 * work["closed"])

# %% [markdown]
# Neither is wrong in itself. But in training the weights change, so what ships is the passed form, and a benchmark of the
# closed one measures another program (and a stale one, lesson 05). **Measure in the calling convention that ships.**

# %% [markdown]
# ## The same answer, and where the time goes
#
# Faster code has to give the same answer. The same *bits*? Below is a scale and shift, eagerly and compiled, on 2048 random
# numbers.

# %%
values, scales = normal(64, 32), normal(32)
shift = lambda values: values * scales + 0.3
eager, compiled = shift(values), jax.jit(shift)(values)

# %%
guess = predict("07-H9", "Are the two results equal bit by bit?", [True, False])

# %% claims=["H9"]
guess.reveal(bool((eager == compiled).all()))
difference = jnp.max(jnp.abs(eager - compiled)) / jnp.max(jnp.abs(eager))
exact = np.float64(values) * np.float64(scales) + np.float64(np.float32(0.3))
errors = [np.abs(np.float64(result) - exact).mean() for result in (eager, compiled)]
print("the compiled one is closer to float64:", bool(errors[1] < errors[0]))
print("largest difference, in float32 roundings of the largest value, is at most 4:", bool(difference <= 4 * 2**-23))

# %% [markdown]
# Eagerly, multiplication and addition are two programs, each rounds. Compiled they are one, and the product is not rounded in
# between: the compiled answer is the more exact one. An assert on equal bits would reject the better result.

# %% [markdown]
# So gate on a tolerance that you state, and on the metric that you care about. `agree` takes the largest difference relative
# to the largest magnitude of a leaf. Then see the gate fail: a shift that is off by a thousandth, and a dtype that changed.


# %%
def agree(a, b, rtol=1e-5):
    a, b = np.asarray(a), np.asarray(b)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    return bool(np.max(np.abs(a - b)) <= rtol * np.max(np.abs(a)))


# %% claims=["H9"]
chosen = [np.argmax(result, axis=1) for result in (eager, compiled)]
print("compiled:", agree(eager, compiled), "  same choice in each row:", np.array_equal(*chosen))
print("off by a thousandth:", agree(eager, eager + 1e-3))
print("float64 arm:", agree(np.asarray(eager), np.asarray(eager, "float64")))

# %% [markdown]
# ### A profile of one step
#
# You know the seconds; what took them? `jax.profiler.trace` writes what the runtime did to a folder. Take *one* warm step,
# with the wait inside, or the trace ends before the work does.


# %%
@jax.jit
def net_step(params, x, y):
    def net_loss(params):
        return jnp.mean((jnp.tanh(x @ params["in"]) @ params["out"] - y) ** 2)

    grads = jax.grad(net_loss)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads)


# %%
params = {"in": normal(1024, 1024) / 32, "out": normal(1024, 8) / 32}
inputs = (params, normal(1024, 1024), normal(1024, 8))
_ = jax.block_until_ready(net_step(*inputs))

# %%
question = "net_step: two layers, tanh, gradients, update. What takes most of the time?"
guess = predict("07-H10", question, ["matrix products", "tanh", "the update"])

# %%
import gzip
from pathlib import Path

folder = tempfile.TemporaryDirectory()
with jax.profiler.trace(folder.name):
    jax.block_until_ready(net_step(*inputs))
saved = next(Path(folder.name).rglob("*.trace.json.gz"))
events = json.loads(gzip.decompress(saved.read_bytes()))["traceEvents"]

# %% [markdown]
# Two files are in the folder. The `.xplane.pb` is for viewers (XProf, TensorBoard); the `.trace.json.gz` opens in Perfetto, and
# it is JSON, so Python can read it. An event that belongs to an operation names it, and the compiled text knows which line of
# your code that operation came from.

# %%
import re
from collections import Counter

text = net_step.lower(*inputs).compile().as_text()


def origin(operation):
    """The JAX operation behind one of XLA's."""
    found = re.search(rf'%?{re.escape(operation)} = .*op_name="([^"]*)"', text)
    return found[1].split("/", 1)[1] if found else operation


# %%
took, names = Counter(), set()
for event in events:
    about = event.get("args", {})
    if about.get("hlo_module", "").startswith("jit_net_step") and "dur" in event:
        names.add(about["hlo_op"])
        took[origin(about["hlo_op"])] += event["dur"] * 1e-6


# %% claims=["H10"]
print("at least 4 operations, the products among them:", len(names) >= 4, any("dot_general" in o for o in took))
kinds = Counter()
for operation, s in took.items():
    is_product = "dot" in operation or "transpose(jvp())/transpose" in operation
    kinds["matrix products" if is_product else "tanh" if "tanh" in operation else "the update"] += s
print("they take over half:", kinds["matrix products"] > 0.5 * kinds.total())
guess.reveal(kinds.most_common(1)[0][0])

# %% tags=["nbval-ignore-output"] ignored="operations and seconds depend on the machine"
picture("One step, by operation", {operation[-30:]: s for operation, s in took.most_common(6)})
folder.cleanup()

# %% [markdown]
# `jvp()` is the forward half of a gradient, `transpose(jvp())` the backward half. A profile answers "where"; only then is it
# worth asking "why". It slows the program a little while it looks, so take the seconds from a run without it.

# %% [markdown]
# ## Break it
#
# A script from a pull request. The old function and the new one; a check that they agree; a speed-up. It looks like many that
# you have seen.


# %%
def speed_up(old, new):
    start = time.perf_counter()
    expected = old()
    jax.block_until_ready(expected)
    old_seconds = time.perf_counter() - start
    assert np.allclose(new()["w"], expected["w"], atol=1e-4)
    start = time.perf_counter()
    new()
    return old_seconds / (time.perf_counter() - start)


# %%
def as_arm(function):
    compiled = jax.jit(lambda *args: function(*args))
    return lambda: compiled(zero, xs, ys)


# %%
question = "speed_up(as_arm(train), as_arm(train)): the same function twice. What does it claim?"
guess = predict("07-B1", question, ["about 1", "over 10 times faster"])

# %%
claimed = speed_up(as_arm(train), as_arm(train))
guess.reveal("over 10 times faster" if claimed > 10 else "about 1")

# %% [markdown]
# Three faults, and two of them flatter the new code:
#
# 1. The old arm is cold: its compile is in the figure. The check has warmed the new one.
# 2. The old arm is awaited, the new one is not.
# 3. One sample each, one after the other: drift and outliers may go either way.
#
# Nobody sees it in the code. Everybody sees it in A against A.

# %% [markdown]
# ## Repair it
#
# Both arms warm, both awaited, in turn, a median of ratios: that is `ratios` from above, turned round.


# %%
def honest_speed_up(old, new, turns=7):
    assert all(agree(a, b) for a, b in zip(jax.tree.leaves(old()), jax.tree.leaves(new()), strict=True))
    return np.median(ratios(new, old, turns))


claimed = honest_speed_up(as_arm(train), as_arm(train))
print("train against train is within 0.5 and 2:", 0.5 < claimed < 2)

# %% [markdown]
# And the question is answered. A measured how long it takes to *ask* for a training run. B measured the run, and one compile.
# The number that both wanted is the warm, finished one, with its conditions beside it.

# %% [markdown]
# ## In the wild
#
# Two reports about speed, with the tools of this lesson. In the first, `scan` was slower to run than an unrolled Python loop,
# and faster to compile ([2023](https://github.com/jax-ml/jax/issues/16611)). Two numbers, so measure two.


# %%
def wave(v, _=None):
    return jnp.sin(v) * 1.01, None


def scanned(v):
    return jax.lax.scan(wave, v, length=200)[0]


def unrolled(v):
    for _ in range(200):
        v, _ = wave(v)
    return v


# %%
question = "200 steps: which compiles over twice as long?"
guess = predict("07-W1", question, ["scanned", "unrolled", "neither"])

# %%
cold_of = {}
for function in (scanned, unrolled):
    lowered = jax.jit(function).lower(jnp.ones(4))
    cold_of[function.__name__] = seconds(lowered.compile)
longer = max(cold_of, key=cold_of.get)
guess.reveal(longer if cold_of[longer] > 2 * min(cold_of.values()) else "neither")
warm_pair = ratios(*(partial(jax.jit(function), jnp.ones(4)) for function in (scanned, unrolled)))

# %% tags=["nbval-ignore-output"] ignored="which of the two runs faster depends on the machine"
print(f"unrolled takes {np.median(warm_pair):.2f} times the run time of scanned")

# %% [markdown]
# The compile half of the report holds. The other half does not hold everywhere: on the CPU where this was written the scan
# ran no slower. A GPU pays for each step of a loop, so measure there before you believe either.

# %% [markdown]
# In the second, 200 small linear systems in a Python loop were slower in JAX than in NumPy, and `vmap` with `jit` was 34 times
# faster than the loop ([2024](https://github.com/jax-ml/jax/issues/20326)).

# %%
systems = jnp.stack([jnp.eye(4) * (i + 2) for i in range(200)])
sides = jnp.ones((200, 4))
solve = lambda system, side: jnp.linalg.solve(system, side).sum()
batched = jax.jit(jax.vmap(solve))

# %%
looped = lambda: jnp.stack([solve(systems[i], sides[i]) for i in range(200)])
print("same numbers:", agree(looped(), batched(systems, sides)))
gain = np.median(ratios(lambda: batched(systems, sides), looped, turns=1))
print("over 10 times faster:", gain > 10)

# %% [markdown]
# The loop makes hundreds of calls, and each costs a dispatch, whatever the size of its work. That is the "four rows" bar of
# your picture, many times over. Lesson 09 is about it.

# %% [markdown]
# **Read a real benchmark** (10 minutes). Open JAX's own
# [benchmark.py](https://github.com/jax-ml/jax/blob/9019b1e4ebbada7e9d36452f7d393ea91a266d9f/benchmarks/benchmark.py).
#
# 1. Who waits for the result, and what happens if nobody does?
# 2. Is the compile in the figures? Is a second compile?
# 3. What does one outlier do to the summary?
# 4. How does `benchmark_suite` compare its arms, and what would drift do?
# 5. Which parts of the report line are printed?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. `f` must. The timer calls `f()` and stops; a function that returns a promise is timed as an enqueue.
# 2. `warmup` calls come first, so the first compile is out. A later one is in, as an outlier.
# 3. It moves the mean and the deviation. The raw times are returned, so you can take a median.
# 4. One after the other, relative to the first one. Drift looks like a difference.
# 5. Name, parameters, number of calls and of warm-ups. No device, version, dtype or cache.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these was reported from somebody's own work, and you have run it above.
#
# | report | what was seen | section |
# |---|---|---|
# | [jax#1219](https://github.com/jax-ml/jax/issues/1219) | a first call that is slow, then 0.2 ms for anything | What one call is made of |
# | [jax#802](https://github.com/jax-ml/jax/issues/802) | microseconds to compute, a minute to print | What one call is made of |
# | [jax#16602](https://github.com/jax-ml/jax/issues/16602) | the transfer guard is silent on the way back, on a CPU | Five numbers for one function |
# | [jax#16611](https://github.com/jax-ml/jax/issues/16611) | scan against an unrolled loop: two numbers, two winners (the run time is reversed here) | In the wild |
# | [jax#20326](https://github.com/jax-ml/jax/issues/20326) | a loop of small solves, slower than NumPy | In the wild |
#
# How much a `float(loss)` on each step costs a training loop is measured in lesson 10.

# %% [markdown]
# ## Recap
#
# - A call returns a promise: stop the clock after `jax.block_until_ready(tree)`.
# - Cold, enqueue, latency, throughput, transfer: five numbers; say which one you give.
# - Inputs placed first and of one dtype; what crosses the boundary is part of the result.
# - Arms in turn in one process, a median of ratios, and A against A before A against B.
# - Every figure with its line: device, versions, shapes, cache, boundary, what was awaited.
# - A peak belongs to a process: one arm, one process, start subtracted.
# - Measure what ships, compare with a tolerance, and ask a profile where the time goes.

# %% [markdown]
# ## Lab
#
# [Lab 07](../../labs/lab07_honest_timing.ipynb) hands you a benchmark that finds a function 41 times faster than itself. You
# build `bench`, a fair comparison and a measurement of peaks, on a device on paper where nothing is noise. About 35 minutes.
