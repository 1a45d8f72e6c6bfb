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
# # 05 · One contract, one compile
#
# A compiled function is a contract: these shapes, these dtypes, these fixed values. A call that keeps the contract costs
# microseconds, and one that breaks it costs a compile. After this lesson you can name what broke it, without guessing.
#
# About 60 minutes.

# %% [markdown]
# ## Question
#
# A training loop is fast, except that some steps are as slow as the first. The loss is right, nothing warns, and the
# profiler blames "compilation". Here is such a loop, on the four rows of lesson 01. Run it, and watch the chart while it
# runs.

# %%
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import chart, explain, predict, stale, watch

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])


def mse(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


# %%
@watch
@eqx.filter_jit
def step(params, x, y, lr):
    grads = jax.grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads)


def compiled_at(function):
    """The numbers of the calls in which `function` was compiled."""
    return [event.call for event in function.seen.events if event.kind == "call" and event.compiles]


# %%
chart(step.seen)
params = {"w": jnp.zeros(2), "b": 0.0}
for i in range(40):
    params = step(params, x, y, lr=0.08 * 0.5 ** (i // 10))  # the rate is halved every ten steps
    time.sleep(0.03)  # slow enough to watch
print("compiled at calls", compiled_at(step))

# %% [markdown]
# Five compiles in forty steps. Call 1 must compile. Calls 11, 21 and 31 follow a rhythm, and call 2 is a riddle of its
# own. Commit yourself before you read on; the answer comes when the tools for it are on the table.

# %%
suspects = ["the rate", "the parameters", "the rows"]
guess_rhythm = predict("05-Q1", "What was different at calls 11, 21 and 31?", suspects)
guess_second = predict("05-Q2", "And what was different at call 2?", suspects)

# %% [markdown]
# ## Before you run
#
# First the ordinary case. A jitted function is called twice with the same shapes and other values. JAX reports what it
# does as events: `trace` (your Python runs with tracers), `lower` (the recording is translated), `compile` (machine code
# is made).


# %%
@watch
@jax.jit
def loss(params, x, y):
    return mse(params, x, y)


# %%
question = "The first call reports trace, lower, compile. What does the second report?"
choices = ["nothing", "compile", "trace, lower, compile"]
guess = predict("05-R1", question, choices)

# %% [markdown]
# ## One call, three stages
#
# The chart is on from here. A mark is a call in which something was built; its height is the time that the call took.

# %% claims=["R1"]
chart(loss.seen)
zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}
exact = {"w": jnp.array([2.0, -1.0]), "b": jnp.zeros(())}
print(float(loss(zero, x, y)), [event.kind for event in loss.seen.events])
already = len(loss.seen.events)
print(float(loss(exact, x, y)), [event.kind for event in loss.seen.events][already:])
guess.reveal(", ".join(event.kind for event in loss.seen.events[already:-1]) or "nothing")

# %% [markdown]
# The second call went straight to the compiled program. How much that is worth differs from machine to machine, so the
# figure is in the chart and the print says only that it is large: the first call against the next hundred together.

# %% claims=["R1"]
for _ in range(100):
    loss(zero, x, y)
seconds = [event.seconds for event in loss.seen.events if event.kind == "call"]
print("first call longer than the last hundred:", seconds[0] > sum(seconds[-100:]))
print(loss.seen)

# %% [markdown]
# You can take the three stages in your own hands. Each gives an object that you can look at, and the last one is the
# program itself. It has no Python behind it that could run again, so it keeps the contract to the letter: another shape
# is refused.

# %% claims=["R1"]
traced = jax.jit(mse).trace(zero, x, y)
lowered = traced.lower()
program = lowered.compile()
print([type(stage).__name__ for stage in (traced, lowered, program)], float(program(zero, x, y)))
try:
    program(zero, x[:2], y[:2])
except TypeError as error:
    print("another shape:", type(error).__name__)

# %% [markdown]
# `jax.jit` is these three stages behind a dictionary. The **key** describes the call; the value is a compiled program. A
# key that is there costs nothing. A key that is not there costs a trace, a lowering and a compile, and the entry stays.
#
# So a retrace always has one cause: *some part of the key is new*. Which part?

# %% [markdown]
# ## The key, part by part
#
# `explain` compares each compile with the nearest earlier one and names what differs by path, old → new. It answers the
# opening question in a line for each.

# %%
for again in explain(step):
    print(f"call {again.call:2}  " + "; ".join(map(str, again.changes)))
parts = {"lr": "the rate", "params['b']": "the parameters"}
guess_rhythm.reveal(parts[explain(step)[-1].changes[0].path])
guess_second.reveal(parts[explain(step)[0].changes[0].path])

# %% [markdown]
# Two faults, then. The rate is a Python float, and the bias began as one. Both are rows of a table that you make now: a
# function is called with `base`, and then with **one** thing changed. `row` prints the traces and compiles of the second
# call, and what `explain` says.


# %%
def new_total():
    def total(tree, power):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree)) ** power

    return watch(jax.jit(total, static_argnames="power"))


v, s = jnp.ones(4), jnp.float32(1.0)
base = {"v": v, "s": s}
print(float(new_total()(base, power=1)))

# %%
from contextlib import nullcontext

UNCHANGED = nullcontext()
DEVICE = str(jax.devices()[0])  # cpu:0, or cuda:0


def row(change, *args, setting=UNCHANGED, **kwargs):
    """Call a new `total` with `base`, then with one thing changed: traces, compiles, and why."""
    total = new_total()
    total(base, power=1)
    with setting:
        total(*args, **kwargs)
    traces, compiles = total.counts.traces - 1, total.counts.compiles - 1
    why = [each for again in explain(total) for each in again.changes]
    said = "; ".join(each.cause if each.cause == "sharding" else str(each) for each in why)
    print(f"{change:24} {traces} {compiles}  {said.replace(DEVICE, 'device 0')}")
    return total


# %%
question = "New values; NumPy arrays; float64; another order of keys. How many of these retrace?"
guess = predict("05-R2", question, [0, 1, 2, 3, 4])

# %% claims=["R2"]
print(f"{'changed':24} traces, compiles, why")
functions = [
    row("the values", {"v": 3 * v, "s": 2 * s}, power=1),
    row("NumPy arrays", {"v": np.ones(4, "float32"), "s": np.float32(1)}, power=1),
    row("NumPy in float64", {"v": np.ones(4), "s": s}, power=1),
    row("order of the keys", {"s": s, "v": v}, power=1),
]
guess.reveal(sum(total.counts.traces - 1 for total in functions))

# %% [markdown]
# The key describes arrays, it does not contain them. NumPy's float64 becomes float32 on the way in (JAX's default), and a
# dict is flattened by sorted key, so its order never matters
# ([asked in 2020](https://github.com/jax-ml/jax/issues/4085)). It comes back sorted, too. Now changes that do matter.

# %% claims=["R2"]
_ = row("one more element", {"v": jnp.ones(5), "s": s}, power=1)
_ = row("dtype", {"v": jnp.ones(4, "int32"), "s": s}, power=1)
_ = row("a Python number", {"v": v, "s": 1.0}, power=1)
_ = row("None for an array", {"v": v, "s": None}, power=1)
_ = row("one more entry", {"v": v, "s": s, "t": s}, power=1)
_ = row("a tuple for the dict", (v, s), power=1)

# %% [markdown]
# An `OrderedDict` has an order on purpose, so there the order is structure. In the other rows the arrays play no part at
# all: a static value, how an argument was passed, a setting of JAX that was changed for one call.

# %% claims=["R2"]
from collections import OrderedDict

_ = row("an OrderedDict", OrderedDict(v=v, s=s), power=1)
_ = row("a static value", base, power=2)
_ = row("by keyword", tree=base, power=1)
_ = row("a setting", base, power=1, setting=jax.default_matmul_precision("default"))

ordered = new_total()
for tree in (OrderedDict(v=v, s=s), OrderedDict(s=s, v=v)):
    ordered(tree, power=1)
print("two orders of an OrderedDict:", ordered.counts.traces, "traces")

# %% [markdown]
# ### A compile with no trace
#
# One row is left, and it hides from everybody who counts traces. Somebody loads pretrained weights with
# `jax.device_put(weights, device)`. Shape, dtype and device are what they were
# ([2023](https://github.com/jax-ml/jax/issues/15924)).

# %%
loaded = {"v": jax.device_put(np.ones(4, "float32"), jax.devices()[0]), "s": s}
print("same device:", loaded["v"].devices() == v.devices())
print("same type:  ", jax.typeof(loaded["v"]) == jax.typeof(v))
outcomes = ["0 traces, 0 compiles", "0 traces, 1 compile", "1 trace, 1 compile"]
guess = predict("05-A14", "After total(base), total(loaded): what does it cost?", outcomes)

# %% claims=["R2"]
total = row("put on its device", loaded, power=1)
chart(total.seen)
print("committed:", v.committed, "->", loaded["v"].committed)
guess.reveal(outcomes[total.counts.traces + total.counts.compiles - 2])

# %% [markdown]
# An array that you place is **committed**: JAX may not move it. That belongs to the key of the executable and not to that
# of the trace, so your Python did not run and a `print` in it would have stayed silent. Put initial and restored state
# through the same `device_put`, and count compiles.

# %% claims=["R2"]
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((1,), ("rows",))
spread = {"v": jax.device_put(v, NamedSharding(mesh, PartitionSpec("rows"))), "s": s}
total = new_total()
for placed in (loaded, spread):
    total(placed, power=1)
print("another layout:", total.counts.traces, "traces; cause:", explain(total)[-1].changes[0].cause)

# %% [markdown]
# Even on one device, a mesh is another layout, and this one costs a trace too. Lesson 11 has eight devices to spread over.

# %% [markdown]
# ### Weak types
#
# `1.0` and `np.array(1.0)` print alike and compute alike. In the table, the Python number was a row of its own. How many
# traces do these three calls cost?


# %%
signatures = []


@watch
@jax.jit
def double(v):
    kind = jax.typeof(v)
    signatures.append((kind.dtype.name, kind.weak_type))
    return 2 * v


# %%
question = "double(1.0), double(np.array(1.0)), double(np.array(2.0)): how many traces?"
guess = predict("05-R4", question, [1, 2, 3])

# %% claims=["R4"]
for value in (1.0, np.array(1.0), np.array(2.0)):
    double(value)
print(signatures)
guess.reveal(double.counts.traces)

# %% [markdown]
# The second member is the **weak type**. A Python number has no dtype of its own: it takes that of the array it meets, so
# that `2 * bfloat16_array` stays bfloat16. A weak float32 and a strong one are two contracts. The trap is what counts as
# weak.

# %%
ways = ["1.0", "jnp.asarray(1.0)", "jnp.array(1.0)", "jnp.full((), 1.0)"]
ways += ["np.array(1.0)", "jnp.float32(1.0)"]
guess = predict("05-A02", "How many of these are weak: " + "; ".join(ways) + "?", [1, 2, 3, 4])

# %% claims=["R4"]
weak = {way: jax.typeof(eval(way)).weak_type for way in ways}
for way, is_weak in weak.items():
    print(f"{way:18} {'weak' if is_weak else 'strong'}")
guess.reveal(sum(weak.values()))

# %% [markdown]
# Turning a Python number into a JAX array does not make it strong; a dtype does, and NumPy's arrays have one. Now the riddle
# of call 2 in its pure form: a carry that starts weak and comes back strong
# ([2020](https://github.com/jax-ml/jax/issues/4274)). A training loop does so once, at step 2, where nobody looks.


# %% claims=["R4"]
def carried(start):
    add = watch(jax.jit(lambda carry: carry + jnp.float32(1)))
    carry = start
    for _ in range(5):
        carry = add(carry)
    return compiled_at(add)


starts = {"0.0": 0.0, "jnp.asarray(0.0)": jnp.asarray(0.0), "jnp.float32(0)": jnp.float32(0)}
print({name: carried(start) for name, start in starts.items()})

# %% [markdown]
# An int that is only added to other ints had the same fault [in 2020](https://github.com/jax-ml/jax/issues/3163). Today
# weak plus weak stays weak, and one trace serves. Give a dtype all the same: the first strong operand brings it back.

# %% claims=["R4"]
add = watch(jax.jit(lambda a, b: a + b))
running = 0
for i in range(10):
    running = add(running, i)
print("sum:", int(running), " traces:", add.counts.traces)

# %% [markdown]
# ### Static or traced
#
# The rate of the opening loop. Both `jax.jit` and `eqx.filter_jit` take a Python number; they differ in what they make of
# it. Four calls, with `n` from 0 to 3, in each of three ways ([2024](https://github.com/patrick-kidger/equinox/issues/645)).


# %%
from functools import partial


def scaled(v, n):
    return v * n


compilers = {
    "jax.jit": jax.jit,
    "jax.jit, static_argnums=1": partial(jax.jit, static_argnums=1),
    "eqx.filter_jit": eqx.filter_jit,
}

# %%
question = "eqx.filter_jit(scaled), called with n = 0, 1, 2, 3: how many traces?"
guess = predict("05-R5", question, [1, 2, 4])

# %% claims=["R5"]
counted = {}
for name, compiler in compilers.items():
    for convert in (int, jnp.asarray):
        # A new lambda each time: no way finds the program of another.
        run = watch(compiler(lambda v, n: scaled(v, n)))
        try:
            results = [run(v, convert(n)).tolist() for n in range(4)]
            counted[name, convert.__name__] = run.counts.traces
        except ValueError:
            counted[name, convert.__name__] = "refused"
for way, traces in counted.items():
    print(f"{way[0]:26} n is {way[1]:8} {traces}")
guess.reveal(counted["eqx.filter_jit", "int"])

# %% [markdown]
# `filter_jit` traces arrays and makes all else **static**: part of the key, known while tracing. `static_argnums` does the
# same for one argument of `jax.jit`, which then has to be hashable, as an array is not. One value, one program.

# %% [markdown]
# Which is right? Ask whether the value decides the *program* or only a *number* in it. A count of layers decides how long
# the program is: it must be static, and a compile for each value is the honest price. A learning rate is a number.


# %%
def layers(v, n):
    for _ in range(n):
        v = jnp.tanh(v)
    return v


# %% claims=["R5"]
print(f"static: {jax.jit(layers, static_argnums=1)(v, 3)[0]:.3f}")
try:
    jax.jit(layers)(v, 3)
except TypeError as error:
    print("traced:", type(error).__name__)

# %% [markdown]
# The number may hide inside a module ([2025](https://github.com/patrick-kidger/equinox/issues/1062)). A plain int field of
# an `eqx.Module` that counts up is a new key for each step.


# %%
class Fit(eqx.Module):
    slope: jax.Array
    steps: int | jax.Array


def counted_fit(steps):
    advance = watch(eqx.filter_jit(lambda fit: eqx.tree_at(lambda f: f.steps, fit, fit.steps + 1)))
    fit = Fit(jnp.zeros(2), steps)
    for _ in range(5):
        fit = advance(fit)
    return int(fit.steps), advance.counts.traces


# %% claims=["R5"]
print("int field:  ", counted_fit(0))
print("array field:", counted_fit(jnp.int32(0)))

# %% [markdown]
# A static object is looked up by its hash and `==`. A dataclass that may change has no hash, and JAX says so. With
# `eq=False` it hashes by identity, and every new but equal config is a compile, in silence
# ([2020](https://github.com/jax-ml/jax/issues/3701)). `frozen=True` compares by value.

# %%
from dataclasses import make_dataclass


def configured(**options):
    Config = make_dataclass("Config", [("scale", float)], **options)
    run = watch(jax.jit(lambda v, config: v * config.scale, static_argnums=1))
    try:
        for _ in range(3):
            run(v, Config(2.0))  # an equal config, made anew
    except ValueError as error:
        return type(error).__name__
    return run.counts.traces


# %% claims=["R5"]
print("plain:      ", configured())
print("eq=False:   ", configured(eq=False))
print("frozen=True:", configured(frozen=True))

# %% [markdown]
# Now the opening loop can be repaired: the rate comes in as an array, and the bias starts as one. Two words changed, and
# the answer is the same.

# %% claims=["R5"]
steady = watch(eqx.filter_jit(step.__wrapped__.__wrapped__))
chart(steady.seen)
state = {"w": jnp.zeros(2), "b": jnp.float32(0.0)}
for i in range(40):
    state = steady(state, x, y, lr=jnp.float32(0.08 * 0.5 ** (i // 10)))
    time.sleep(0.03)
print("compiled at calls", compiled_at(steady))
print("same parameters:", all(jnp.allclose(params[name], state[name], atol=1e-5) for name in state))

# %% [markdown]
# ### What the key does not hold
#
# You have lists of what is *in* the key. A value that the function reads from outside is not. Here `scale` is a global
# and the function sums `scale * v` over four ones; then `scale` becomes 3, and a vector of two ones comes along.

# %%
shapes = []
scale = 1.0


@jax.jit
def scaled_sum(v):
    shapes.append(v.shape)
    return jnp.sum(scale * v)


first = float(scaled_sum(jnp.ones(4)))
scale = 3.0

# %%
question = "scale is 3 now. scaled_sum(ones(4)), then scaled_sum(ones(2))?"
guess = predict("05-R3", question, ["12.0, 6.0", "4.0, 2.0", "4.0, 6.0"])

# %% claims=["R3"]
again, other = float(scaled_sum(jnp.ones(4))), float(scaled_sum(jnp.ones(2)))
print(first, again, other, shapes)
guess.reveal(f"{again}, {other}")
print("as an argument:", float(jax.jit(lambda v, scale: jnp.sum(scale * v))(jnp.ones(4), 3.0)))

# %% [markdown]
# One function, two truths at the same time: each program is as old as its own trace. In public this is
# [a scale that does not change](https://github.com/jax-ml/jax/issues/1426), and
# [an attribute of a static `self`](https://github.com/jax-ml/jax/issues/28418) that is sometimes fresh. `stale` asks a
# watched function what it took along.


# %% claims=["R3"]
@watch
@jax.jit
def scaled_mean(v):
    return jnp.mean(scale * v)


scaled_mean(v)
scale = 5.0
for captured in stale(scaled_mean).changed:
    print(captured)

# %% [markdown]
# So *fewer traces is not the goal*. A function with one trace and a stale number is worse than one with two traces. The
# goal is one trace in which everything that changes is an argument.

# %% [markdown]
# ## Made anew in a loop
#
# The first part of the key is the function itself, as an *object*. "Never call `jax.jit` in a loop" is half the rule; the
# other half is which function you give it ([2022](https://github.com/jax-ml/jax/issues/9288),
# [2022](https://github.com/jax-ml/jax/issues/9672)). Four ways to jit the same doubling, each five times over.


# %%
def twice(v):
    return 2 * v


class Doubler:
    def apply(self, v):
        return 2 * v


doubler = Doubler()
makers = {
    "jax.jit(twice)": lambda: jax.jit(twice),
    "jax.jit(lambda v: twice(v))": lambda: jax.jit(lambda v: twice(v)),
    "jax.jit(partial(twice))": lambda: jax.jit(partial(twice)),
    "jax.jit(doubler.apply)": lambda: jax.jit(doubler.apply),
}

# %%
question = "Of these four in a loop of five turns, how many compile only once?"
guess = predict("05-R6", question, [0, 1, 2, 4])

# %% claims=["R6"]
turns = {}
with watch() as seen:
    chart(seen)
    for name, make in makers.items():
        before = seen.total.compiles
        for _ in range(5):
            make()(v)
        turns[name] = seen.total.compiles - before
for name, compiles in turns.items():
    print(f"{name:27} {compiles}")
guess.reveal(list(turns.values()).count(1))

# %% claims=["R2"]
for name in ("<lambda>", "apply"):
    print(f"{name:9}", {again.cause for again in explain(seen, name)})

# %% [markdown]
# A named function is the same object in each turn. A `lambda`, a `partial` and even `doubler.apply` are made anew
# wherever they are written: Python builds a bound method at each access. Keep the jitted function, not the recipe. Side by
# side, as a ratio:

# %% claims=["R6"]
kept = watch(jax.jit(doubler.apply))
kept(v)


def seconds_of(call, turns=5):
    start = time.perf_counter()
    for _ in range(turns):
        call(v).block_until_ready()
    return time.perf_counter() - start


fresh, steady_turns = seconds_of(lambda v: jax.jit(doubler.apply)(v)), seconds_of(kept)
print("made anew is more than 10 times slower:", fresh > 10 * steady_turns)
print("traces when kept:", kept.counts.traces)

# %% [markdown]
# ### An optimizer is made of functions
#
# A sweep over seeds: each run builds `optax.sgd(0.1)` and hands it to the same step. The settings are equal, so is the
# program the same ([2025](https://github.com/patrick-kidger/equinox/issues/940))?

# %%
import optax


@watch
@eqx.filter_jit
def train_step(optimizer, params, opt_state):
    grads = jax.grad(mse)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state


# %%
question = "Three equal optimizers, built one after the other: how many compiles?"
guess = predict("05-A11", question, [1, 3])

# %% claims=["R6"]
for _ in range(3):
    optimizer = optax.sgd(0.1)
    train_step(optimizer, zero, optimizer.init(zero))
change = explain(train_step)[-1].changes[0]
print("what changed:", change.path, "as a", change.cause)
guess.reveal(train_step.counts.compiles)

# %% [markdown]
# An Optax optimizer is a pair of functions made by `sgd`, and functions are compared by identity. Worse, its learning rate
# is a number *inside* them: a constant of the program ([2023](https://github.com/google-deepmind/optax/issues/577)).
# `inject_hyperparams` moves it into the optimizer's state, where it is data.

# %% claims=["R5"]
before = train_step.counts.compiles
moved = []
optimizer = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)
opt_state = optimizer.init(zero)
for rate in (0.1, 0.2, 0.3):
    opt_state.hyperparams["learning_rate"] = jnp.float32(rate)
    after, _ = train_step(optimizer, zero, opt_state)
    moved.append(round(float(after["b"]), 2))
print("bias after one step:", moved, "  compiles:", train_step.counts.compiles - before)

# %% [markdown]
# ### Shapes made by data
#
# A detector finds a few strong entries in each frame. NumPy's `nonzero` returns as many as there are, so the data choose
# the shape, and every function that touches the result pays. Here are six frames with their numbers of hits, and two
# consumers.

# %%
frames = np.random.default_rng(11).random((6, 8)).astype("float32")
print("hits:", (frames > 0.5).sum(axis=1).tolist())


def mean(found):
    return jnp.mean(found)


def spread(found):
    return jnp.max(found) - jnp.min(found)


mean_of, spread_of = watch(jax.jit(mean)), watch(jax.jit(spread))

# %%
question = "Six frames through mean_of and spread_of: how many compiles together?"
guess = predict("05-R7", question, [2, 6, 8, 12])

# %% claims=["R7"]
chart(mean_of.seen)
exact_answers = []
for frame in frames:
    found = frame[np.nonzero(frame > 0.5)]
    exact_answers.append([float(mean_of(found)), float(spread_of(found))])
    time.sleep(0.1)
guess.reveal(mean_of.counts.compiles + spread_of.counts.compiles)

# %% [markdown]
# Fix the number of slots, and say which are filled. `top_k` gives the six strongest entries of any frame; the mask tells
# which of them are hits; and every consumer respects the mask. (Lesson 06 is about doing that right.)


# %% claims=["R7"]
@watch
@jax.jit
def both(frame, threshold):
    strongest, _ = jax.lax.top_k(frame, 6)
    valid = strongest > threshold
    mean = jnp.sum(jnp.where(valid, strongest, 0)) / jnp.maximum(valid.sum(), 1)
    lowest = jnp.min(jnp.where(valid, strongest, jnp.inf))
    return jnp.stack([mean, strongest[0] - lowest])


answers = [both(frame, 0.5).tolist() for frame in frames]
print("compiles:", both.counts.compiles)
print("same answers:", np.allclose(answers, exact_answers, atol=1e-6))
assert (frames > 0.5).sum(axis=1).max() <= 6

# %% [markdown]
# Six slots are a promise, and the last line checks it. A frame with seven hits would lose one in silence: **fewer traces
# with another answer is no repair**. So compare answers whenever you fix a shape.

# %% [markdown]
# ## How you would know
#
# There are many detectors, and each looks at another place. Give them three faults: a new shape, a committed array, and a
# global that changed. `heard` collects what JAX logs, with `jax.log_compiles` and its own cache-miss explanations switched
# on.

# %%
import logging
from contextlib import contextmanager


@contextmanager
def heard():
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("jax").addHandler(handler)
    try:
        with jax.log_compiles(), jax.explain_cache_misses(True):
            yield lines
    finally:
        logging.getLogger("jax").removeHandler(handler)


# %%
factor, body_runs = 2.0, []


@watch
@jax.jit
def probe(v):
    body_runs.append(v.shape)
    return factor * v


# %%
def witnesses(argument):
    """What each detector saw in one more call of `probe`."""
    ran, compiles = len(body_runs), probe.counts.compiles
    with heard() as lines:
        probe(argument)
    return {
        "log_compiles": any("Compiling jit(probe)" in line for line in lines),
        "cache-miss log": any("CACHE MISS" in line and "probe" in line for line in lines),
        "body runs": len(body_runs) - ran,
        "watch": probe.counts.compiles - compiles,
        "stale": len(stale(probe).changed),
    }


# %%
probe(v)
detectors = ["log_compiles alone", "watch alone", "log_compiles and watch", "all but stale"]
guess = predict("05-R9", "Which detectors see the compile that a committed array costs?", detectors)

# %% claims=["R9"]
print("new shape:", witnesses(jnp.ones(7)))
committed = witnesses(jax.device_put(v, jax.devices()[0]))
print("committed:", committed)
factor = 5.0
print("stale    :", witnesses(v))
guess.reveal(" and ".join(name for name, saw in committed.items() if saw))

# %% [markdown]
# JAX's explanation of cache misses explains traces, so it is silent about the second; so is everything that counts runs of
# the body. And nothing that waits for a compile can see the third fault, in which there is none. From outside, without a
# changed line, `JAX_LOG_COMPILES=1 python train.py` writes the first column; you will do that to a child below.

# %% [markdown]
# Equinox has a guard: `assert_max_traces` raises when a function is called too often. It counts *calls of what it wraps*.
# So where you put it decides what it counts: inside of `jit` those calls are traces.


# %%
def halve(v):
    return v / 2


inside = jax.jit(eqx.debug.assert_max_traces(halve, max_traces=1))
outside = eqx.debug.assert_max_traces(jax.jit(halve), max_traces=1)

# %%
question = "Both are called with one shape, three times. Which of them raises?"
guess = predict("05-R9b", question, ["inside", "outside", "none"])

# %% claims=["R9"]
for name, function in {"inside": inside, "outside": outside}.items():
    try:
        for _ in range(3):
            function(v)
        print(f"{name:7} fine; it counts {eqx.debug.get_num_traces(function)}")
    except RuntimeError:
        print(f"{name:7} raised; it counts {eqx.debug.get_num_traces(function)}")
        guess.reveal(name)

# %% claims=["R9"]
try:
    inside(jnp.ones(9))
except RuntimeError as error:
    print(str(error).split("It appears that ")[1].replace("\n", " "))
print("programs kept:", inside._cache_size())

# %% [markdown]
# The last line reads JAX's own cache: one entry for each program of the function. The underscore says that the name may go
# away, so keep it out of tests that have to last.

# %% [markdown]
# ### A guard that is free when nobody asks
#
# In production a surprise compile should be slow, not fatal; in a test it should be loud. Let an environment variable
# decide, at the moment when the function is wrapped. Without it, `guarded` returns the very function that it got: no
# wrapper, no cost, nothing to go wrong.

# %% claims=["R10"]
import os


def guarded(function, max_traces=1):
    """`function` itself; or if TRACE_GUARD is set, one that raises when it is traced too often."""
    if os.environ.get("TRACE_GUARD", "0") == "0":
        return function
    return eqx.debug.assert_max_traces(function, max_traces=max_traces)


print("off, the same object:", guarded(halve) is halve)

# %% claims=["R10"]
os.environ["TRACE_GUARD"] = "1"
loud = jax.jit(guarded(halve))
del os.environ["TRACE_GUARD"]
print("one shape, three calls:", [loud(v).shape for _ in range(3)])
try:
    loud(jnp.ones(9))
except RuntimeError:
    print("another shape: RuntimeError, traced", eqx.debug.get_num_traces(loud), "times")

# %% [markdown]
# A guard speaks when the fault happens. A **regression test** makes it happen: call with several lengths, and require one
# compile. Three lengths, no round ones among them: 3, 5 and 9.

# %%
mean_of_valid = jax.jit(lambda padded, count: jnp.sum(padded) / count)


def padded_mean(values):
    """The mean of at most 16 values."""
    return mean_of_valid(np.pad(values, (0, 16 - len(values))), len(values))


def assert_one_compile(function, lengths=(3, 5, 9)):
    jax.clear_caches()  # what an earlier test compiled must not help
    with watch() as seen:
        means = [float(function(np.arange(n, dtype="float32"))) for n in lengths]
    assert means == [1.0, 2.0, 4.0], f"wrong values: {means}"
    assert seen.total.compiles == 1, f"{seen.total.compiles} compiles for lengths {lengths}"


# %% claims=["R10"]
unpadded_mean = jax.jit(lambda values: values.mean())
for name, function in {"padded": padded_mean, "unpadded": unpadded_mean}.items():
    try:
        assert_one_compile(function)
        print(f"{name:9} passes")
    except AssertionError as error:
        print(f"{name:9} fails: {error}")

# %% [markdown]
# Notice the two asserts. The first one compares values: without it, a function that returns a constant would be the best of
# all. And `clear_caches` comes first, or a program that another test has left behind would be found and nothing counted.

# %% [markdown]
# ## Every variant stays
#
# Two hundred retraces are slow; are they gone afterwards? The cache has to keep what it compiled, or it would be no cache.
# This child process calls the smallest of functions, a copy, with 200 lengths, and reports its resident memory on the way.
# It runs under a cap, so that nothing can go wrong in earnest.

# %%
STAIR = """
import ctypes, sys, jax, jax.numpy as jnp, numpy as np, psutil
def report(label):
    print(label, psutil.Process().memory_info().rss, flush=True)
f = jax.jit(lambda v: jnp.copy(v))
f(np.ones(1, "float32"))
report("start")
for n in range(2, 202):
    f(np.ones(n, "float32"))
    if n % 5 == 1:
        report(f._cache_size())
jax.clear_caches()
report("cleared")
if sys.platform == "linux":
    ctypes.CDLL(None).malloc_trim(0)
report("trimmed")
"""
ON_CPU = {"JAX_PLATFORMS": "cpu"}  # the child leaves a GPU to this process

# %%
question = "The data are a few bytes. How much does the memory grow over 200 lengths?"
choices = ["under 1 MB", "over 10 MB"]
guess = predict("05-R8", question, choices)

# %% claims=["R8"]
from traceonce.sandbox import run_capped
from traceonce.show import child_chart

drawn = child_chart(500, "A child that compiles 200 variants", numbers=False)
ending = run_capped(STAIR, memory_mb=500, seconds=300, environment=ON_CPU, on_sample=drawn)
drawn.close(ending)
memory = {label: int(size) for label, size in map(str.split, ending.stdout.splitlines())}
grown = memory["201"] - memory["start"]
guess.reveal("over 10 MB" if grown > 10e6 else "under 1 MB")

# %% [markdown]
# Every step of the stair is a handful of executables that nobody will call again. In a service whose shapes come from its
# users, this is a leak with no leaking line in it ([2020](https://github.com/jax-ml/jax/issues/2072)). What does
# `jax.clear_caches()` give back?

# %% claims=["R8"]
import sys
from itertools import pairwise

levels = [memory[label] for label in ("start", "51", "101", "151", "201")]
print("each quarter is higher than the last:", all(low < high for low, high in pairwise(levels)))
print("half of it back after clear_caches:  ", memory["201"] - memory["cleared"] > grown / 2)
if sys.platform == "linux":
    print("half of it back after malloc_trim:   ", memory["201"] - memory["trimmed"] > grown / 2)

# %% [markdown]
# `clear_caches` drops every program at once. The freed pieces go back to the C library, which keeps them for later; a
# monitor of the process sees no fall until it trims. Freed and given back are two things. (Lesson 08 goes on from here.)

# %% [markdown]
# Dropping the jitted wrapper gives nothing back: the entries hang on the *function*
# ([2021](https://github.com/jax-ml/jax/issues/7930)). A brand-new wrapper of it finds them all.


# %% claims=["R8"]
def squares(v):
    return jnp.sum(v * v)


for n in range(1, 6):
    jax.jit(squares)(np.ones(n, "float32"))  # the wrapper is dropped at once
wrapper = jax.jit(squares)
print("a new wrapper knows", wrapper._cache_size(), "programs")
wrapper.clear_cache()
print("after its clear_cache()", wrapper._cache_size())

# %% [markdown]
# ### A cache on disk
#
# All of that dies with the process. The **persistent compilation cache** writes executables to a folder, for the next
# start. An application opts in, as this child does; a library must not, and importing one should configure nothing. The
# child reports on its own first call, and JAX logs its compiles from outside.

# %%
COLD = """
import json, sys, time, jax, jax.numpy as jnp
from traceonce import watch
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
w, x = jnp.eye(8), jnp.ones((4, 8))
for scale in map(float, sys.argv[2:]):
    def deep(w, x):
        for _ in range(12):
            x = jnp.tanh(x @ w) + jnp.sin(x)
        return scale * jnp.sum(x)
    step = watch(jax.jit(jax.value_and_grad(deep)))
    start = time.perf_counter()
    value = float(step(w, x)[0])
    report = {"value": value, "took": time.perf_counter() - start}
    c = step.counts
    print(json.dumps(report | {"traces": c.traces, "compiles": c.compiles, "hits": c.cache_hits}))
"""

# %%
import json
import subprocess
import tempfile
from pathlib import Path

folder = tempfile.mkdtemp()


def start_cold(*scales):
    """Run the child with the cache in `folder`; a report for each scale."""
    command = [sys.executable, "-c", COLD, folder, *map(str, scales)]
    settings = os.environ | ON_CPU | {"JAX_LOG_COMPILES": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    logged = sum("Compiling jit(deep)" in line for line in done.stderr.splitlines())
    for report in reports:
        print({name: report[name] for name in ("traces", "compiles", "hits")})
    print("compiles logged:", logged)
    return reports


# %% [markdown]
# The first process finds an empty folder. It compiles the function twice, with `scale` 1 and 2, as a sweep over a baked-in
# learning rate would.

# %% claims=["R9"]
first, doubled = start_cold(1, 2)
entries = sorted(Path(folder).glob("jit_deep*-cache"))
print("entries on disk:", len(entries))

# %%
outcomes = ["1 trace, 0 compiles", "0 traces, 0 compiles", "1 trace, 1 compile that is a hit"]
question = "The next process with scale 1 finds its program on disk. What does it report?"
guess = predict("05-R12", question, outcomes)

# %% claims=["R12"]
(second,) = start_cold(1)
print("faster:", second["took"] < first["took"], "  same value:", first["value"] == second["value"])
guess.reveal(outcomes[2] if second["compiles"] else outcomes[1 - second["traces"]])

# %% [markdown]
# Your Python was traced again: the folder keeps the work of the compiler, not of the tracer. JAX logs and reports a compile
# for a hit as well, so whoever counts compiles needs the hits beside them. How much faster it was depends on the machine
# and the program; here it is a matter of course, on a model that compiles for minutes it is the point.

# %% [markdown]
# An entry's key is made of the program, the compiler's version, the device and the flags. `scale` is a constant of the
# program, hence two entries: such a sweep never hits. And what can the cache *not* key on? On what is in the file. Let the
# two entries swap places.

# %%
question = "A process with scale 1 finds the entry of scale 2. What does it compute?"
notices = ["it notices", "half the value", "twice the value"]
guess = predict("05-R12b", question, notices)

# %% claims=["R12"]
one, two = (entry.read_bytes() for entry in entries)
entries[0].write_bytes(two)
entries[1].write_bytes(one)
(swapped,) = start_cold(1)
ratio = round(swapped["value"] / first["value"], 3)
guess.reveal({1.0: notices[0], 0.5: notices[1], 2.0: notices[2]}[ratio])

# %% [markdown]
# Whoever can write to that folder decides what you compute. Neither does the key know of a library that was exchanged under
# the same version. So: a folder of your own, never one for all users; and wipe it after an upgrade, or when a result cannot
# be explained.

# %%
import shutil

shutil.rmtree(folder)

# %% [markdown]
# ## Break it
#
# All faults so far were traces too many. Now the inverse. A library has a small constant, and a test of what it does at
# zero. The test passes, as it should.

# %%
EPS = 1e-6


@jax.jit
def safe_log(v):
    return jnp.log(v + EPS)


def check_at_zero(function):
    got = float(function(jnp.float32(0.0)))
    assert abs(got + 13.82) < 0.01, f"safe_log(0) is {got:.2f}, not -13.82"


# %%
def outcome(check, *args):
    try:
        check(*args)
    except AssertionError as error:
        return f"fails: {error}"
    return "passes"


print(outcome(check_at_zero, safe_log))

# %% [markdown]
# Is it a good test? You find out by **mutation**: change the code under test for the worse, and see whether the test
# notices. Somebody makes the constant ten times larger.

# %%
EPS = 1e-5
question = "EPS is 1e-5 now, and log(1e-5) is -11.51. What does the test say?"
guess = predict("05-R11", question, ["passes", "fails"])

# %% claims=["R11"]
print("in the same process:", outcome(check_at_zero, safe_log))
print("eager formula:      ", round(float(np.log(0.0 + EPS)), 2))
guess.reveal(outcome(check_at_zero, safe_log).split(":")[0])

# %% [markdown]
# The mutant survives. Its program was never made: the cached trace **absorbed** the change, and the test examined the old
# constant. In a notebook, and in a test session that patches a module, that is the normal case. A green mutation report
# from such a harness is worth nothing.

# %% [markdown]
# ## Repair it
#
# Before you repair the test, prove that the harness can see a mutation *at all*. There are two ways to be blind: the cached
# trace, and an input at which the constant does not matter. Try each.


# %%
def check_at_one(function):
    got = float(function(jnp.float32(1.0)))
    assert abs(got) < 0.01, f"safe_log(1) is {got:.2f}, not 0"


body = safe_log.__wrapped__  # the plain function under jax.jit

# %%
question = "Two tests (at 0, at 1), cached and plain body: how many of four notice the mutant?"
guess = predict("05-R11b", question, [0, 1, 2, 4])

# %% claims=["R11"]
noticed = 0
for check in (check_at_zero, check_at_one):
    for name, function in {"cached": safe_log, "plain body": body}.items():
        said = outcome(check, function)
        noticed += said != "passes"
        print(f"{check.__name__:13} {name:11} {said}")
guess.reveal(noticed)

# %% [markdown]
# Only one pair works: an input where the constant decides, *and* a body that is really run. With that proven, there are
# three ways to get past the cache. Watch the test fail in each.

# %% claims=["R11"]
print("undecorated body:", outcome(check_at_zero, safe_log.__wrapped__))
print("fresh closure:   ", outcome(check_at_zero, jax.jit(lambda v: safe_log.__wrapped__(v))))
safe_log.clear_cache()
print("clear_cache:     ", outcome(check_at_zero, safe_log))

# %% [markdown]
# The body is fastest and skips the compiler; the closure is new each time and cannot be stale; `clear_cache` tests the very
# object that ships, and must be called *each time*. Here it is as a mutation test: right code, three mutants, and the right
# code again.


# %% claims=["R11"]
def check_fresh():
    safe_log.clear_cache()
    check_at_zero(safe_log)


for EPS in (1e-6, 1e-5, 1e-7, 0.0, 1e-6):
    cached = outcome(check_at_zero, safe_log).split(":")[0]
    fresh = outcome(check_fresh).split(":")[0]
    print(f"EPS = {EPS:<6} the cached check {cached:7} the fresh check {fresh}")

# %% [markdown]
# Read the first column again, and see how the two tests share a cache: what the fresh one compiled in one line, the cached
# one finds in the next, one mutant late. Better than any of this: let `eps` be an argument, and there is nothing left to
# go stale.

# %% [markdown]
# ## In the wild
#
# A published example of a latent ODE trained well, and its step 39 took 48 seconds
# ([2022](https://github.com/patrick-kidger/diffrax/issues/111)). The data set has 10 000 rows and the batch 256. Here in
# small: ten rows, batches of four, two epochs.

# %%
rows10, size = np.arange(20, dtype="float32").reshape(10, 2), 4


@watch
@jax.jit
def batch_mean(rows, mask):
    return jnp.sum(rows.mean(axis=1) * mask) / jnp.sum(mask)


def batches(pad):
    for _ in range(2):
        for start in range(0, len(rows10), size):
            rows = rows10[start : start + size]
            missing = (size - len(rows)) * pad
            mask = np.pad(np.ones(len(rows), "float32"), (0, missing))
            yield np.pad(rows, ((0, missing), (0, 0))), mask


# %%
question = "Two epochs of batches of 4, 4 and 2. At which calls does it compile?"
guess = predict("05-A15", question, ["1", "1, 3", "1, 3, 6"])

# %%
chart(batch_mean.seen)
short = [float(batch_mean(*batch)) for batch in batches(pad=False)]
guess.reveal(", ".join(map(str, compiled_at(batch_mean))))

# %% [markdown]
# The short last batch is a shape of its own: one more compile, in the first epoch, at its last step. It is the most
# common retrace of all. In PyTorch it costs nothing, so `drop_last=False` is what everybody has. Drop it, or pad it and
# carry a mask:

# %%
before = batch_mean.counts.compiles
padded = [float(batch_mean(*batch)) for batch in batches(pad=True)]
print("new compiles:", batch_mean.counts.compiles - before)
print("same means:", padded == short, padded[:3])

# %% [markdown]
# **Read a real loop** (10 minutes). Open the data loader and `make_step` in Equinox's
# [RNN example](https://github.com/patrick-kidger/equinox/blob/06e8526febaf4f1bae5393d8596e8f6ccbfddcc8/examples/train_rnn.ipynb).
#
# 1. What happens to the rows that do not fill a batch?
# 2. Which arguments of `make_step` are static, and does any of them change?
# 3. Where is the optimizer built, and what would a second one cost?
# 4. Which arrays are committed, and would a restored checkpoint be?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. They are dropped: the loader yields while a whole batch fits. The next permutation mixes them in again.
# 2. Everything in `model` that is no array: activation functions, sizes. Nothing of it changes.
# 3. Once, outside. `make_step` closes over it, so a new one under the same name would not be seen.
# 4. None: they come from `jax.random` and NumPy. A checkpoint restored with `device_put` would be, for one compile and no
#    trace.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these was reported from somebody's own work, and you have run it above.
#
# | report | what was seen | section |
# |---|---|---|
# | [jax#4274](https://github.com/jax-ml/jax/issues/4274), [jax#3163](https://github.com/jax-ml/jax/issues/3163) | a carry that starts as a Python number compiles twice (for ints mended since) | Weak types |
# | [equinox#645](https://github.com/patrick-kidger/equinox/issues/645), [equinox#1062](https://github.com/patrick-kidger/equinox/issues/1062) | a Python int through `filter_jit`, or in a module | Static or traced |
# | [jax#3701](https://github.com/jax-ml/jax/issues/3701) | an equal config object, a new compile | Static or traced |
# | [jax#15924](https://github.com/jax-ml/jax/issues/15924) | restored weights compile, and no trace is counted | A compile with no trace |
# | [jax#4085](https://github.com/jax-ml/jax/issues/4085) | does the order of a dict matter? | The key, part by part |
# | [jax#9288](https://github.com/jax-ml/jax/issues/9288), [jax#9672](https://github.com/jax-ml/jax/issues/9672) | a lambda or a bound method, jitted in a loop | Made anew in a loop |
# | [equinox#940](https://github.com/patrick-kidger/equinox/issues/940), [optax#577](https://github.com/google-deepmind/optax/issues/577) | a new optimizer, a baked-in learning rate | An optimizer is made of functions |
# | [jax#1426](https://github.com/jax-ml/jax/issues/1426), [jax#28418](https://github.com/jax-ml/jax/issues/28418), [jax#1348](https://github.com/jax-ml/jax/issues/1348) | a captured value stays what it was (run in lesson 01) | What the key does not hold |
# | [jax#2072](https://github.com/jax-ml/jax/issues/2072), [jax#7930](https://github.com/jax-ml/jax/issues/7930) | memory creeps up; a dropped wrapper frees nothing | Every variant stays |
# | [diffrax#111](https://github.com/patrick-kidger/diffrax/issues/111) | one late step takes 48 s | In the wild |

# %% [markdown]
# ## Recap
#
# - A call is looked up by its key. A new part costs a trace, a lowering and a compile, and the program stays.
# - The key: function object, structure, shapes, dtypes, weak types, static values, placement, settings.
# - What is not in the key is as old as the trace.
# - What changes is an array with a dtype; what decides the program is static; functions are made once.
# - Count compiles as well as traces, and compare answers when a count went down.
# - Guards go inside `jit`; tests begin with a cleared cache; a mutation test has failed once.

# %% [markdown]
# ## Lab
#
# [Lab 05](../../labs/lab05_retracing.ipynb) hands you a tracker that compiles on every frame, for four reasons at once.
# You make it trace once without changing an answer, build the guard, and write a test that notices when the code under it
# is sabotaged. About 35 minutes.
