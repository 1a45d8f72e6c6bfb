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
# # 08b · What a compiled program needs
#
# A compiled program states its memory before it runs. After this lesson you can read that plan, say which part of it is too
# large, and make that part smaller without changing the answer.
#
# About 60 minutes. The first half, [08](08_memory.ipynb), is about the host and about dying.

# %% [markdown]
# ## Question
#
# An evaluation perturbs its input 32 times, runs a small network on each, and returns mean and variance: two arrays of half a
# megabyte. The network has 0.8 MB of weights. With 32 variants the job fits, with 2048 it ends in `RESOURCE_EXHAUSTED`. Where did
# the gigabytes go?

# %%
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import chart, plan, predict

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

rng = np.random.default_rng(8)
normal = lambda *shape: jnp.asarray(rng.normal(size=shape), "float32")
weights, x = [normal(256, 256) / 16 for _ in range(3)], normal(512, 256)
keys = jax.random.split(jax.random.key(0), 32)


# %%
def variant(weights, x, key):
    h = x + 0.1 * jax.random.normal(key, x.shape)
    for w in weights:
        h = jnp.tanh(h @ w)
    return h


def wide(weights, x, keys):
    h = jax.vmap(lambda key: variant(weights, x, key))(keys)
    return h.mean(0), h.var(0)


# %% [markdown]
# ## Before you run
#
# Before the large program a small one: a step of gradient descent on the four rows of lesson 01. Its arguments are the
# parameters (`w` of 2 and `b`), `x` (4 × 2) and `y` (4), all float32.

# %%
question = "How many bytes are the step's arguments?"
guess = predict("08-O6", question, [15, 60, 120])

# %% [markdown]
# ## The plan, before the run
#
# `plan` compiles without running, and reads what the compiler has laid out. No memory is needed for it, and no data either: a
# `ShapeDtypeStruct` will do for an array.


# %% claims=["O6"]
def step(params, x, y):
    loss = lambda params: jnp.mean((x @ params["w"] + params["b"] - y) ** 2)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, jax.grad(loss)(params))


of = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
small = plan(step, {"w": of(2), "b": of()}, of(4, 2), of(4))
guess.reveal(small.arguments)

# %% [markdown]
# Four parts. **Arguments** and **outputs** are what goes in and comes out. **Temporaries** are what it needs in between, and nobody
# wrote them down: this is where surprises live. **Aliases** are outputs that take over the memory of an argument. Now the evaluation.

# %%
question = "One variant's result has 0.5 MB. How many MB are the temporaries of `wide`, with 32?"
guess = predict("08-O6b", question, ["under 2", "over 16"])

# %% claims=["O6"]
one = 512 * 256 * 4
planned = plan(wide, weights, x, keys)
print(f"arguments {planned.arguments:,}; both outputs at least {2 * one:,}: {planned.outputs >= 2 * one}")
print("temporaries hold every variant at once:", planned.temporaries >= 32 * one)
guess.reveal("over 16" if planned.temporaries > 16e6 else "under 2")

# %% [markdown]
# `vmap` is not a loop: it gives every intermediate a new axis of 32, and each has 17 MB. That is the answer to the question in one
# word, and 2048 variants are one plan away, without the memory to run it:

# %% claims=["O6"]
many = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 2048))


def fits(budget, function, *args):
    return plan(function, *args).total <= budget


print("32 variants in 1 GB:", fits(1e9, wide, weights, x, keys), "  2048:", fits(1e9, wide, weights, x, many))

# %% [markdown]
# ### Donation
#
# A training loop holds the old state while it computes the new one, and drops the old one right after. With `donate_argnums` the
# compiler may write the new one *into* the old one's memory. The plan shows it as aliases.

# %%
update = lambda state, gradient: state - 0.1 * gradient
donating = jax.jit(update, donate_argnums=0)
old, gradient = jnp.ones((1000, 1000)), jnp.ones((1000, 1000))

# %%
question = "new = donating(old, gradient). Then old is read, for a log. What happens?"
outcomes = ["the old values", "the new values", "an error"]
guess = predict("08-O10", question, outcomes)

# %% claims=["O10"]
both = plan.compare(plain=(update, old, gradient), donating=(donating, old, gradient))
for name, p in both.plans.items():
    print(f"{name:9} aliases {p.aliases:>9,}  total without temporaries {p.total - p.temporaries:>10,}")
new = donating(old, gradient)
print("old is deleted:", old.is_deleted())
try:
    seen = outcomes[0 if float(old[0, 0]) == 1 else 1]
except RuntimeError as error:
    seen = "an error"
    print(str(error).splitlines()[0])
guess.reveal(seen)

# %% [markdown]
# The name `old` is alive, its buffer is not ([asked in 2022](https://github.com/jax-ml/jax/issues/9237)). Rebind it, `state =
# step(state, ...)`, and copy beforehand what a log or an average of weights is to keep (`jnp.copy`). Donation needs an output of the
# same shape and dtype; otherwise JAX warns, and the plan says 0:

# %% claims=["O10"]
import warnings

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    useless = plan(jax.jit(jnp.sum, donate_argnums=0), new)
print("aliases:", useless.aliases, " warned:", any("donated" in str(w.message) for w in said))

# %% [markdown]
# ### Is the plan true?
#
# On a GPU, the **allocator** keeps statistics of its own: bytes in use, their peak, the limit. On a CPU there is no such
# allocator, and `memory_stats()` gives `None`.


# %%
def on_gpu(measure):
    """What a measurement says on a GPU; elsewhere, that it needs one."""
    print(measure() if jax.default_backend() == "gpu" else "needs a GPU: not measured here")


def allocator_agrees():
    device = jax.devices()[0]
    before = device.memory_stats()["bytes_in_use"]
    jax.block_until_ready(jax.jit(wide)(weights, x, keys))
    rise = device.memory_stats()["peak_bytes_in_use"] - before
    return f"peak within a factor of 2 of the plan: {0.5 < rise / (planned.temporaries + planned.outputs) < 2}"


# %% claims=["O6"] tags=["needs-gpu"]
on_gpu(allocator_agrees)

# %% [markdown]
# For a CPU, a process can say. The child below compiles, resets its **high-water mark**, runs once, and reports by how much
# the mark rose. One arm, one process (lesson 07).

# %%
import inspect
import json
import sys

from traceonce.observe.planning import compiler_options
from traceonce.sandbox import run_capped

MEASURE = """
def kb(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
weights = [jnp.full((256, 256), 1 / 256)] * 3
x, keys = jnp.ones((512, 256)), jax.random.split(jax.random.key(0), 32)
arguments = jax.block_until_ready((weights, x, keys))
program = jax.jit(ARM).lower(*arguments).compile(compiler_options=OPTIONS)
Path("/proc/self/clear_refs").write_text("5")
before = kb("VmRSS")
jax.block_until_ready(program(*arguments))
rise, about = (kb("VmHWM") - before) * 1024, program.memory_analysis()
print(json.dumps([rise, about.temp_size_in_bytes + about.output_size_in_bytes]))
"""


# %% [markdown]
# The options are those of `plan`: on a CPU, XLA may hide buffers inside of fusions, where its own figures do not see them. These
# options switch it off.


# %%
def measured(arm, options=None):
    """By how many bytes the peak of a new process rises when it runs this arm, and what was planned."""
    functions = "".join(inspect.getsource(f) for f in (variant, wide, chunked, join, running))
    head = "import jax, jax.numpy as jnp, json, re\nfrom functools import partial\nfrom pathlib import Path\n"
    program = head + functions + f"ARM, OPTIONS = {arm}, {options}\n" + MEASURE
    ending = run_capped(program, memory_mb=900, environment={"JAX_PLATFORMS": "cpu"})
    return json.loads(ending.stdout)


# %% [markdown]
# ## Fan out, then reduce
#
# Four ways to the same mean and variance. `lax.map` runs the variants in chunks, a `vmap` within each. `running` never stacks
# them: it carries Welford's triple through a `scan`.


# %%
def chunked(weights, x, keys, size):
    h = jax.lax.map(lambda key: variant(weights, x, key), keys, batch_size=size)
    return h.mean(0), h.var(0)


def join(state, h):
    n, mean, m2 = state
    gap = h - mean
    mean = mean + gap / (n + 1)
    return n + 1, mean, m2 + gap * (h - mean)


def running(weights, x, keys):
    zeros = jnp.zeros_like(x)
    fold = lambda state, key: (join(state, variant(weights, x, key)), None)
    n, mean, m2 = jax.lax.scan(fold, (0.0, zeros, zeros), keys)[0]
    return mean, m2 / n


# %%
from traceonce.show.records import Arm, Bars


def draw(plans):
    """The parts of each plan side by side."""
    parts = ("arguments", "new outputs", "temporaries")
    sizes = {name: (p.arguments, p.outputs - p.aliases, p.temporaries) for name, p in plans.plans.items()}
    chart(Bars("Planned bytes", parts, tuple(Arm(name, size) for name, size in sizes.items())))


# %%
question = "Whose temporaries are over two thirds of the wide one's?"
choices = ["chunks of 8", "chunks of 32", "both", "neither"]
guess = predict("08-O7", question, choices)

# %% claims=["O7"]
from functools import partial

ARMS = {
    "wide": wide,
    "chunks of 32": partial(chunked, size=32),
    "chunks of 8": partial(chunked, size=8),
    "chunks of 1": partial(chunked, size=1),
    "running": running,
}
plans = plan.compare(**{name: (arm, weights, x, keys) for name, arm in ARMS.items()})
draw(plans)
share = {name: p.temporaries / plans["wide"].temporaries for name, p in plans.plans.items()}
print("each at most the one before it:", list(share.values()) == sorted(share.values(), reverse=True))
guess.reveal(choices[1 if share["chunks of 8"] < 2 / 3 < share["chunks of 32"] else 2])

# %% [markdown]
# **Chunk = N is the wide vmap again**, and whoever "added chunking" with a default of 64 changed nothing. And look at the small
# chunks: the network's part shrinks, but `lax.map` still stacks every *result* before the mean is taken. Only `running` reduces as it
# goes. The statistic is the same:

# %% claims=["O7"]
results = {name: jax.jit(arm)(weights, x, keys) for name, arm in ARMS.items()}
for name in ("chunks of 8", "chunks of 1", "running"):
    apart = max(float(jnp.abs(a - b).max()) for a, b in zip(results[name], results["wide"], strict=True))
    print(f"{name:12} within 1e-5 of wide: {apart < 1e-5}")

# %% [markdown]
# Same keys, same variants, so same numbers. (Fewer variants, or new keys, would be cheaper too, and another experiment.) Now each
# arm in a process of its own:

# %%
arms = {"wide": "wide", "chunks of 8": "partial(chunked, size=8)", "running": "running"}
pairs = {}
if sys.platform == "linux":
    pairs = {name: measured(arm, compiler_options("cpu")[0]) for name, arm in arms.items()}

# %% claims=["O6", "O7"]
for name, (rise, promised) in pairs.items():
    print(f"{name:12} measured within 15 MB of its plan: {abs(rise - promised) < 15e6}")
rises = [rise for rise, _ in pairs.values()]
print("in the same order:", rises == sorted(rises, reverse=True))

# %% [markdown]
# The plan is true, up to a few megabytes that belong to the process. What it leaves out: the arrays that you hold beside it, the
# executable's constants (lesson 07), and programs that run at the same time. On a CPU also what fusions hide. The program as it
# *ships*, without those options:

# %% claims=["O6"]
if sys.platform == "linux":
    rise, promised = measured("partial(chunked, size=1)")
    print("chunks of 1, as it ships, needs over 1.4 times its plan:", rise > 1.4 * promised)

# %% [markdown]
# ## The tape of a scan
#
# A `scan` keeps one carry, whatever its length. Its gradient does not: the backward pass needs what each step computed, and that
# is kept for all steps ([2020](https://github.com/jax-ml/jax/issues/3186)). The **tape**, in PyTorch's words. Here are 200 steps on a
# carry of 64 × 64.


# %%
def scan_loss(w, xs, dtype=jnp.float32, compute=jnp.float32, wrap=lambda body: body):
    def body(w, c, x):
        c = c.astype(compute)
        return jnp.tanh(jnp.sin(c @ w.astype(compute)) + jnp.cos(c * x.astype(compute))).astype(dtype)

    body = wrap(body)
    c, _ = jax.lax.scan(lambda c, x: (body(w, c, x), None), jnp.zeros((64, 64), dtype), xs)
    return c.astype(jnp.float32).sum()


def tape(length=200, **how):
    gradient = jax.grad(partial(scan_loss, **how))
    return plan(gradient, of(64, 64), of(length)).temporaries


# %% [markdown]
# Two remedies are told. `jax.checkpoint` around the body keeps only the carry and computes the rest again. A carry in bfloat16
# has half the bytes. Practitioners report that checkpoint does not free the tape, and that bfloat16 halves it.

# %%
question = "Which of the two, alone, brings the tape to 60 % or less?"
choices = ["checkpoint", "a bfloat16 carry", "both", "neither"]
guess = predict("08-O9", question, choices)

# %% claims=["O9"]
half = {"dtype": jnp.bfloat16}
tapes = {
    "plain": tape(),
    "bfloat16 carry": tape(**half),
    "checkpoint": tape(wrap=jax.checkpoint),
    "both": tape(wrap=jax.checkpoint, **half),
}
kept = {name: size / tapes["plain"] for name, size in tapes.items()}
for name, part in kept.items():
    print(
        f"{name:15} {'all of it' if part > 0.9 else 'under 0.6' if part > 0.3 else 'under 0.3' if part > 0.2 else 'under 0.2'}"
    )
small = [kept["checkpoint"] < 0.6, kept["bfloat16 carry"] < 0.6]
guess.reveal(choices[{(True, False): 0, (False, True): 1, (True, True): 2, (False, False): 3}[tuple(small)]])

# %% [markdown]
# The report does not hold here, and it is instructive why. This body computes in float32: what is kept of a step are four float32
# intermediates (sin and cos need theirs), and the carry's dtype is none of them. Checkpoint throws all four away and keeps the carry;
# *then* its dtype counts.

# %% claims=["O9"]
print("computing in bfloat16 too, alone, halves:", 0.4 < tape(compute=jnp.bfloat16, **half) / tapes["plain"] < 0.6)
growth = {
    name: tape(400, wrap=wrap) / tape(100, wrap=wrap)
    for name, wrap in (("plain", lambda b: b), ("checkpoint", jax.checkpoint))
}
print({name: f"{ratio:.0f} times for 4 times the length" for name, ratio in growth.items()})

# %% [markdown]
# So each half of the report is true somewhere: bfloat16 halves the tape of a body that *computes* in it, and checkpoint does not
# free the tape: one carry a step remains, and it still grows with the length. To break the growth, nest: an outer scan of 20 over an
# inner scan of 20, checkpointed as a whole, keeps 20 carries, and 20 more while it goes back.


# %% claims=["O9"]
def nested_loss(w, xs):
    step = lambda c, x: (jnp.tanh(jnp.sin(c @ w) + jnp.cos(c * x)), None)
    inner = jax.checkpoint(lambda c, xs: jax.lax.scan(jax.checkpoint(step), c, xs))
    return jax.lax.scan(inner, jnp.zeros((64, 64)), xs.reshape(20, 20))[0].sum()


nested = plan(jax.grad(nested_loss), of(64, 64), of(400)).temporaries
print("400 steps, nested, under a third of flat checkpoint:", nested < tape(400, wrap=jax.checkpoint) / 3)

# %% [markdown]
# What does it cost in accuracy? Recomputing gives the same numbers. Rounding each carry does not:

# %% claims=["O9"]
w, xs = 0.3 * jnp.eye(64), jnp.linspace(0, 1, 200)
exact = jax.grad(scan_loss)(w, xs)
relative = lambda g: float(jnp.abs(g - exact).max() / jnp.abs(exact).max())
print("checkpoint, within 1e-5:", relative(jax.grad(partial(scan_loss, wrap=jax.checkpoint))(w, xs)) < 1e-5)
error = relative(jax.grad(partial(scan_loss, **half))(w, xs))
print("bfloat16 carry, within 1e-5:", error < 1e-5, " within 2 %:", error < 0.02)

# %% [markdown]
# ### Running sums stay float32
#
# A carry that is *transformed* forgets its rounding. A carry that is *summed into* collects it. Add 1 to a bfloat16 zero, 336
# times.

# %%
guess = predict("08-O9b", "What is the sum?", [336, 335, 256])

# %% claims=["O9"]
ones = jnp.ones(336, jnp.bfloat16)
total = jax.lax.scan(lambda s, v: (s + v, None), jnp.bfloat16(0), ones)[0]
guess.reveal(int(total))
print("summed in float32:", int(jax.lax.scan(lambda s, v: (s + v, None), jnp.float32(0), ones)[0]))

# %% [markdown]
# bfloat16 has eight significant bits: beyond 256 its neighbours are 2 apart, 257 does not exist, and the sum stands still. No
# warning, no NaN. Losses, counts, running means and optimiser moments stay in float32, whatever the rest does.

# %% [markdown]
# ### Indices instead of results
#
# The second thing that grows is the stacked *output* of a scan. Each of 400 steps chooses the nearest of 100 patches of 64 × 64.
# Return the patch, or its number?


# %%
def choose(queries, bank, with_patch):
    def step(carry, query):
        best = jnp.argmin(jnp.abs(bank - query).mean((1, 2)))
        return carry, (bank[best] if with_patch else best)

    return jax.lax.scan(step, None, queries)[1]


# %% claims=["O9"]
queries, bank = normal(400), normal(100, 64, 64)
full, numbers = (plan(partial(choose, with_patch=each), queries, bank).outputs for each in (True, False))
print(f"outputs: {full:,} and {numbers:,} bytes")
indices = jax.jit(partial(choose, with_patch=False))(queries, bank)
patches = jax.jit(partial(choose, with_patch=True))(queries, bank)
print("rebuilt for the steps that are looked at:", bool((bank[indices[7:9]] == patches[7:9]).all()))

# %% [markdown]
# ## Precision tiers
#
# Precision is memory as well, in both directions. `jax_enable_x64` is *global*: switched on for one stubborn sum, it makes
# float64 of every array whose dtype nobody named.


# %%
def table(dtype=None):
    grid = jnp.linspace(0.0, 1.0, 400, dtype=dtype)
    return jnp.sort(jnp.sin(grid[:, None] * grid[None, :]), axis=0).sum()


# %%
question = "The same source under x64. How does its plan change?"
guess = predict("08-O11", question, ["not at all", "half as much again", "doubles"])

# %% claims=["O11"]
single = plan(table)
with jax.enable_x64(True):
    double, named = plan(table), plan(partial(table, jnp.float32))
ratio = double.total / single.total
guess.reveal("doubles" if 1.8 < ratio < 2.2 else "not at all" if ratio < 1.2 else "half as much again")
print("with its dtype named, as before:", 0.9 < named.total / single.total < 1.1)

# %% [markdown]
# Name the dtype where an array is made. If one sum needs float64, do that sum on the host, or in a block of its own. The other
# direction: the network in bfloat16, against float32 by **cosine** and by the largest difference.


# %% claims=["O11"]
def network(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return x.astype(jnp.float32)


low = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (weights, x))
a, b = network(weights, x), network(*low)
cosine = float((a * b).sum() / jnp.linalg.norm(a) / jnp.linalg.norm(b))
print("cosine over 0.999:", cosine > 0.999, "  largest difference over 0.003:", float(jnp.abs(a - b).max()) > 0.003)
ratio = plan(network, *low).arguments / plan(network, weights, x).arguments
print("arguments:", ratio, "of before")

# %% [markdown]
# Direction right, single values off in the third digit: fine for a classifier, not for a difference of two nearly equal results.
# Report both figures; the cosine alone hides outliers. And a fit whose matrix is **ill-conditioned** multiplies the error: a cubic
# through exact points, by normal equations.

# %%
t = np.linspace(0, 1, 200)
powers = np.stack([t**i for i in range(4)], 1)
y = powers @ np.array([1.0, -2.0, 3.0, -1.0])
print(f"condition number about 10^{np.log10(np.linalg.cond(powers.T @ powers)):.0f}")


def misfit(dtype):
    """Largest error of the fit, with the points rounded to `dtype` and everything after in float32."""
    a, b = (jnp.asarray(each, dtype).astype(jnp.float32) for each in (powers, y))
    found = jnp.linalg.solve(a.T @ a, a.T @ b)
    return float(np.abs(powers @ np.asarray(found, "float64") - y).max())


# %% claims=["O11"]
off = {name: misfit(name) for name in ("float32", "bfloat16")}
print({name: error < 1e-3 for name, error in off.items()}, "(largest error under 0.001)")
print("bfloat16 is over 20 times worse:", off["bfloat16"] > 20 * off["float32"])

# %% [markdown]
# Only the *points* were rounded, to three digits; the solver amplified that. Where a matrix is inverted, float32 is the floor.

# %% [markdown]
# ## Between host and device
#
# A model is restored. The usual code initialises it and then loads the weights over it. The weights have 20 MB.

# %%
from traceonce.observe import let_go, live_bytes

let_go()
base = live_bytes().bytes
mb = lambda: round((live_bytes().bytes - base) / 1e6)
init = lambda key: {"w": jax.random.normal(key, (5, 1_000_000))}
on_disk = {"w": np.ones((5, 1_000_000), "float32")}

# %%
question = "params = init(key); params = jax.device_put(on_disk). Device bytes, at most?"
guess = predict("08-O12", question, ["20 MB", "40 MB"])

# %% claims=["O12"]
params = init(keys[0])
loaded = jax.device_put(on_disk)  # the right-hand side is there before the name is bound anew
usual = mb()
params = loaded
print("after:", mb())
del params, loaded
shapes = jax.eval_shape(init, keys[0])  # structure and shapes, no memory
assert jax.tree.map(lambda s, v: s.shape == v.shape, shapes, on_disk)["w"]
params = jax.device_put(on_disk)
print("host first, at most:", mb())
guess.reveal(f"{usual} MB")

# %% [markdown]
# Twice the model, for a moment; and a model that takes 60 % of a GPU cannot be restored on it. Let `jax.eval_shape` give the structure,
# load and *convert* on the host, and upload once.

# %% claims=["O12"]
del params
params = jax.device_put(on_disk)
converted = jax.tree.map(lambda v: v.astype(jnp.bfloat16), params)
print("converted on the device:", mb(), "MB at most")
del params, converted
params = jax.device_put(jax.tree.map(lambda v: v.astype(jnp.bfloat16), on_disk))
print("converted on the host:  ", mb(), "MB at most")

# %% [markdown]
# ### Heavy things are made on the device
#
# The other way round, a crowded host: a loader builds 64 shifted copies of a batch and uploads them all. The copies are heavy, the
# batch is small. Upload the *base* once, and build the rest inside of the compiled function.


# %%
def on_host(base, w):
    copies = np.stack([np.roll(base, shift, axis=0) for shift in range(64)])
    return copies, jax.jit(lambda copies, w: jnp.tanh(copies @ w).mean(0))(copies, w)


@jax.jit
def on_device(base, w):
    rolled = lambda total, shift: (total + jnp.tanh(jnp.roll(base, shift, axis=0) @ w), None)
    return jax.lax.scan(rolled, jnp.zeros((len(base), w.shape[1])), jnp.arange(64))[0] / 64


# %%
question = "The base has 0.26 MB. How many times fewer bytes cross to the device?"
guess = predict("08-O14", question, [1, 8, 64])

# %% claims=["O14"]
base_rows, w8 = np.asarray(normal(1024, 64)), normal(64, 8)
copies, first = on_host(base_rows, w8)
second = on_device(base_rows, w8)
print("same values, within 1e-4:", float(jnp.abs(first - second).max()) < 1e-4)
device_plan = plan(on_device, base_rows, w8)
print("temporaries under a quarter of the copies:", device_plan.temporaries < copies.nbytes / 4)
guess.reveal(copies.nbytes // base_rows.nbytes)

# %% [markdown]
# "Relocated, and identical to 1e-4" is the whole proof: compute it both ways once, then delete the old way. On a CPU both lie in the
# same RAM, so the relief of the host shows only where a device has memory of its own; the bytes that cross are the same everywhere.

# %% [markdown]
# ### Allocator settings
#
# On a GPU, JAX takes 75 % of the memory at its first operation and manages it itself. So `nvidia-smi` shows what is *reserved*,
# never what is used. Three environment variables change that, before the process starts. `traceonce doctor` knows them under old and
# new names:

# %% claims=["O13"]
from traceonce.doctor import Machine, devices

SETTINGS = (
    "XLA_PYTHON_CLIENT_PREALLOCATE=false",
    "XLA_PYTHON_CLIENT_PREALLOCATE=off",
    "XLA_CLIENT_MEM_FRACTION=0.5",
    "XLA_PYTHON_CLIENT_MEM_FRACTION=0.5",
    "XLA_PYTHON_CLIENT_ALLOCATOR=platform",
)
for setting in SETTINGS:
    for finding in devices.allocator(Machine(environ=dict([setting.split("=")]))):
        print(f"{finding.level:4} {finding.found}")

# %% [markdown]
# | setting | for | not for |
# |---|---|---|
# | preallocate (the default) | production: no fragmentation, no surprise at hour 30, a neighbour cannot take it | seeing what is used; two processes on a GPU |
# | `XLA_PYTHON_CLIENT_PREALLOCATE=false` | diagnosis: `nvidia-smi` grows with you; a notebook beside a job | long runs near the limit: it may fragment |
# | `XLA_CLIENT_MEM_FRACTION` | two processes that share, each with its part | curing a program that is too large |
# | `XLA_PYTHON_CLIENT_ALLOCATOR=platform` | finding who holds what: frees at once | speed: each array is a call to the driver |

# %% [markdown]
# Two practitioners disagree: "always switch preallocation off" and "never". Both are right, at different times: off to *diagnose*, on
# to *run*. What each does is seen in a process of its own, with little on the device:

# %%
PROBE = """
import json, jax, jax.numpy as jnp
held = jnp.ones((1000, 1000)).block_until_ready()
print(json.dumps(jax.devices()[0].memory_stats() or {}))
"""


def settings_hold():
    def stats(**environment):
        return json.loads(run_capped(PROBE, memory_mb=8000, environment=environment).stdout)

    tenth = stats(XLA_CLIENT_MEM_FRACTION="0.1")
    fifth = stats(XLA_CLIENT_MEM_FRACTION="0.2", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    limits = 1.8 < fifth["bytes_limit"] / tenth["bytes_limit"] < 2.2
    reserved = [each.get("pool_bytes", 0) > 0.8 * each["bytes_limit"] for each in (tenth, fifth)]
    return f"the fraction sets the limit: {limits}; reserved at once: {reserved}"


# %% claims=["O13"] tags=["needs-gpu"]
on_gpu(settings_hold)

# %% [markdown]
# ### Before it fails
#
# Some "out of memory" is none. cuDNN cannot start, and says so with a status that looks like memory; a library of the wrong version
# is first on the path; a cache is older than the upgrade. `traceonce doctor` looks. Here it examines a made-up machine that has all
# three faults:

# %%
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from traceonce.doctor import packages, places
from traceonce.doctor.machine import Installed

found = {
    "jax-cuda12-plugin": Installed("jax-cuda12-plugin", "0.11.2", ("nvidia-cudnn-cu12<10.0,>=9.8",)),
    "nvidia-cudnn-cu12": Installed("nvidia-cudnn-cu12", "9.1.0.70"),
    "nvidia-cudnn-cu13": Installed("nvidia-cudnn-cu13", "9.12.0.46"),
    "jaxlib": Installed("jaxlib", "0.11.2", (), datetime(2026, 5, 2, tzinfo=UTC)),
}

# %%
question = "Two cuDNN wheels, one too old, and a cache from before the upgrade. How many findings?"
guess = predict("08-O15", question, [1, 2, 3])

# %% claims=["O15"]
with tempfile.TemporaryDirectory() as root:
    entry = Path(root, "cache", "an_entry")
    entry.parent.mkdir()
    entry.write_text("compiled before the upgrade")
    os.utime(entry, (1.77e9, 1.77e9))
    settings = {"JAX_COMPILATION_CACHE_DIR": "/cache"}
    machine = Machine(
        Path(root), settings, packages=(), system="linux", installed=found.get, now=datetime(2026, 6, 1, tzinfo=UTC)
    )
    findings = [*packages.cudnn(machine), *places.compile_cache(machine)]
for finding in findings:
    print(f"{finding.level} {finding.subject}: {finding.found}\n     {finding.advice}")
guess.reveal(len(findings))

# %% tags=["nbval-ignore-output"] ignored="it describes the machine that it runs on"
for finding in (*packages.cudnn(Machine()), *devices.allocator(Machine()), *places.compile_cache(Machine())):
    print(f"{finding.level} {finding.subject}: {finding.found}")

# %% [markdown]
# ## Break it
#
# A network of twelve layers does not fit. Somebody has read about `jax.checkpoint` and puts it around the network: one line
# ([2022](https://github.com/jax-ml/jax/issues/12792)).


# %%
def net(layer, ws, h):
    for w in ws:
        h = layer(w, h)
    return h.sum()


layer = lambda w, h: jnp.tanh(jnp.sin(h @ w))
ws, h = of(12, 64, 64), of(512, 64)
plain = jax.grad(partial(net, layer))
whole = jax.grad(jax.checkpoint(partial(net, layer)))

# %%
question = "What part of the temporaries remains?"
parts = ["over 0.8", "0.3 to 0.8", "under 0.3"]
guess = predict("08-B1", question, parts)

# %%
wrapped = plan.compare(plain=(plain, ws, h), whole=(whole, ws, h))
share_of_whole = wrapped["whole"].temporaries / wrapped["plain"].temporaries
guess.reveal(parts[(share_of_whole < 0.8) + (share_of_whole < 0.3)])

# %% [markdown]
# Nothing is won. The forward pass keeps nothing now, true; but the backward pass begins by computing the *whole* network again, and
# keeps everything of that. The peak has moved, not shrunk.

# %% [markdown]
# ## Repair it
#
# Checkpoint *pieces*. One layer at a time is computed again and forgotten; what is kept is what passes between the layers.

# %%
each = jax.grad(partial(net, jax.checkpoint(layer)))
wrapped = plan.compare(**wrapped.plans, each=(each, ws, h))
draw(wrapped)
print("each layer, under 0.7:", wrapped["each"].temporaries < 0.7 * wrapped["plain"].temporaries)

# %% [markdown]
# Which arrays are kept can be listed before anything is compiled. `print_saved_residuals` names each with the line that made it;
# here they are counted:

# %%
import contextlib
import io

from jax.ad_checkpoint import print_saved_residuals

for name, body in {"plain": layer, "checkpointed": jax.checkpoint(layer)}.items():
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_saved_residuals(partial(net, body), jnp.ones((12, 64, 64)), jnp.ones((512, 64)))
    kept_arrays = [line for line in text.getvalue().splitlines() if line.startswith("f32[512,64]")]
    print(f"{name:13} {len(kept_arrays)} arrays of 512 x 64")

# %% [markdown]
# ## In the wild
#
# **Spend a budget.** A numba loop needed little, its `vmap` put everything on the GPU at once
# ([2022](https://github.com/jax-ml/jax/issues/11319)). How wide *may* it be? Ask the plan for each chunk size, and take the widest
# that fits. Nothing runs.


# %%
def through_a_table(v):
    a = jnp.sort(jnp.sin(v[:, None] * v[None, :]), axis=0)
    return (a @ a.T).sum()


in_chunks = lambda size: lambda vs: jax.lax.map(through_a_table, vs, batch_size=size)
totals = {size: plan(in_chunks(size), of(64, 128)).total for size in (1, 4, 16, 64)}
print("wider is dearer:", list(totals.values()) == sorted(totals.values()))
budget = 6e6
print("widest within 6 MB:", max(size for size, total in totals.items() if total <= budget))

# %% [markdown]
# **Which part is too large?** Four parts, four remedies, with what they gave in this notebook.


# %% claims=["O1"]
def words(part):
    return next(
        text for most, text in ((0.2, "under 0.2"), (0.3, "under 0.3"), (0.7, "under 0.7"), (9, "all")) if part < most
    )


lost = (both["donating"].total - both["donating"].temporaries) / (both["plain"].total - both["plain"].temporaries)
rows = [
    ("temporaries", "chunk = N", share["chunks of 32"]),
    ("temporaries", "chunks of 8", share["chunks of 8"]),
    ("temporaries", "reduce as you go", share["running"]),
    ("tape", "checkpoint the body", kept["checkpoint"]),
    ("tape", "and a bfloat16 carry", kept["both"]),
    ("outputs", "indices, rebuilt later", numbers / full),
    ("arguments", "donate the state", lost),
    ("arguments", "heavy things made inside", base_rows.nbytes / copies.nbytes),
]
for part, remedy, remains in rows:
    print(f"{part:12} {remedy:25} {words(remains)}")

# %% [markdown]
# **Read a real loop** (10 minutes). Open Flax's
# [lm1b/train.py](https://github.com/google/flax/blob/0740ef63c4eae05de58d80f85a05fc23bb8b3261/examples/lm1b/train.py).
#
# 1. Which of the three compiled functions donates, and why not the others?
# 2. `train_metrics.append(metrics)`: what accumulates, where, and when does it end?
# 3. Could `eval_metrics` be a running sum? What would that save?
# 4. The state is restored over an initialised one. What is the peak, and what would `jax.eval_shape` change?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. `p_train_step` (`donate_argnums=(0,)`): its state is rebound. Evaluation and prediction use the parameters again.
# 2. A dict of device scalars for each step, until the next evaluation: small here, and the pattern that is not small with logits.
# 3. Yes, sums and a denominator. It would save little memory and a growing list.
# 4. Two states at once, of which each has the optimiser's moments: six times the parameters, until the old one is dropped.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these was reported from somebody's own work, and you have run it above.
#
# | report | what was seen | section |
# |---|---|---|
# | [jax#11319](https://github.com/jax-ml/jax/issues/11319) | vmap needs the memory of all at once | In the wild |
# | [jax#3186](https://github.com/jax-ml/jax/issues/3186) | scan in constant memory, its gradient in linear | The tape of a scan |
# | [jax#12792](https://github.com/jax-ml/jax/issues/12792) | checkpoint around everything saves nothing | Break it |
# | [jax#9237](https://github.com/jax-ml/jax/issues/9237) | "buffer has been deleted or donated" | The plan, before the run |

# %% [markdown]
# ## Recap
#
# - Read the plan before the run: arguments, outputs, temporaries, aliases.
# - `vmap` is all at once. Chunks shrink the inside, and only a running reduction shrinks the stack.
# - Chunk = N is the wide vmap; checkpoint around everything is no checkpoint.
# - A tape grows with its length. What is kept of a step decides what a smaller carry gives.
# - Sums stay float32; ill-conditioned fits too. Name dtypes.
# - Host first, upload once; heavy things are made inside. Preallocate to run, not to diagnose.

# %% [markdown]
# ## Lab
#
# [Lab 08](../../labs/lab08_memory.ipynb): normal equations, a fan-out, a stream of masks and a cache, each over its budget. You bring
# them under it, by restructuring alone, with results that do not change. About 40 minutes.
