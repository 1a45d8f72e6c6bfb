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
# # 11 · Placement is state too
#
# Several devices are one array program with a layout. The numbers do not depend on the layout; the time and the memory do.
# After this lesson you can say where each byte lives, what has to travel, and who adds up the gradient.
#
# About 55 minutes. No GPU is needed, and none is used: eight CPU devices do here what eight GPUs do elsewhere, at another speed.

# %%
import jax

jax.config.update("jax_platforms", "cpu")  # also where there is a GPU: one is not eight
jax.config.update("jax_num_cpu_devices", 8)  # before JAX starts

# %% [markdown]
# ## Question
#
# Somebody moves a training step to eight devices with one line, a `device_put`. The global shapes are right, the loss is
# right, and it is slower than on one. Here it is, on the handwritten digits of the earlier labs.

# %%
import re
import time
from collections import Counter

import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from traceonce import explain, key_uses, layout, predict, watch
from traceonce.data import digits

pixels, labels = digits()
x, y = pixels[:256], labels[:256]
draw = np.random.default_rng(0).normal
first = {"w1": draw(0, 0.1, (64, 32)), "w2": draw(0, 0.1, (32, 10))}
first = {name: leaf.astype("float32") for name, leaf in first.items()}


# %%
def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"])
    scores = jax.nn.log_softmax(hidden @ params["w2"])
    return -jnp.mean(jnp.sum(scores * jax.nn.one_hot(y, 10), axis=1))


def step(params, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


# %%
mesh = jax.make_mesh((8,), ("data",))
eighths = NamedSharding(mesh, P("data"))
spread, x8, y8 = jax.device_put((first, x, y), eighths)  # the one line


def train(params, x, y, steps=10):
    compiled = jax.jit(step)
    for _ in range(steps):
        params, value = compiled(params, x, y)
        value.block_until_ready()
    return params, float(value)


one, loss_of_one = train(first, x, y)
eight, loss_of_eight = train(spread, x8, y8)
print(f"loss {loss_of_one:.3f} and {loss_of_eight:.3f}; shapes", one["w1"].shape, eight["w1"].shape)


# %%
def seconds(function, *args):
    jax.block_until_ready(function(*args))
    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - start


compiled = jax.jit(step)
pairs = [(seconds(compiled, first, x, y), seconds(compiled, spread, x8, y8)) for _ in range(40)]
on_one, on_eight = np.median(pairs, axis=0)
print("slower on eight devices:", bool(on_eight > on_one))

# %% [markdown]
# Part of that is the size of the problem: 256 small rows are a job for one device, and eight CPU devices share your cores.
# But part of it would follow you to eight GPUs and a large model.

# %%
parts = ["the rows", "the parameters", "the loss"]
guess_moved = predict("11-Q1", "At every step, something is collected whole on each device. What?", parts)

# %% [markdown]
# ## Before you run
#
# The first cell asked for eight devices before JAX did anything. People put that line into a later cell, where it is too
# late ([2021](https://github.com/jax-ml/jax/issues/6887)). There are two ways to ask, and each has its own way to be late.

# %%
outcomes = ["both take effect", "both are ignored", "one raises, one is ignored", "both raise"]
question = "Now ask for 4: by jax.config, and by XLA_FLAGS in os.environ. What happens?"
guess = predict("11-S1", question, outcomes)

# %% claims=["S1"]
import os

raised = []
try:
    jax.config.update("jax_num_cpu_devices", 4)
except RuntimeError as error:
    raised.append(type(error).__name__)
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
print("config:", *raised, "  devices:", jax.device_count())
guess.reveal(outcomes[2] if raised and jax.device_count() == 8 else outcomes[0])

# %% [markdown]
# The variable is read once, when the backend starts, and nobody says that it was not read. A process that starts with it
# has its devices. So: the first cell, or the environment of the process.

# %% claims=["S1"]
import subprocess
import sys

ASK = "import jax; print(jax.device_count(), *jax.devices()[:2])"
command = [sys.executable, "-c", ASK]
settings = os.environ | {"JAX_PLATFORMS": "cpu"}
print("in time:", subprocess.run(command, capture_output=True, text=True, env=settings).stdout.strip())
del os.environ["XLA_FLAGS"]

# %% [markdown]
# ## Where the bytes live
#
# A **mesh** is an array of devices whose axes have names. A `PartitionSpec` says, for each axis of an array, along which mesh
# axis it is cut; `None`, or nothing, means not at all. `NamedSharding` is the two together. The shape that you see stays the
# global one.

# %% claims=["S1"]
small = np.arange(64, dtype="float32").reshape(16, 4)
by_rows = jax.device_put(small, NamedSharding(mesh, P("data")))
print(by_rows.shape, "in blocks of", by_rows.sharding.shard_shape(by_rows.shape))
layout(by_rows)

# %% [markdown]
# With a mesh of two axes an array can be cut twice, or once and copied along the other axis. Four rows of devices and two
# columns: how many bytes do the eight hold together?

# %%
grid = jax.make_mesh((4, 2), ("data", "model"))
question = "256 bytes, P('data') on the 4 x 2 mesh: how many bytes do all devices hold?"
guess = predict("11-S1b", question, [256, 512, 1024, 2048])

# %% claims=["S1"]
twice = layout(jax.device_put(small, NamedSharding(grid, P("data"))))
guess.reveal(twice.held)
twice

# %% claims=["S1"]
layout(jax.device_put(small, NamedSharding(grid, P("data", "model"))))

# %% [markdown]
# An axis that the spec does not name is an axis of **copies**. An empty spec, `P()`, is a copy on each device: *replicated*.
# That is what you want for parameters that every device reads at every step, and not what the opening line did.

# %% claims=["S1"]
print(layout(spread["w1"]))
whole = NamedSharding(mesh, P())
print(layout(jax.device_put(first["w1"], whole)))

# %% [markdown]
# A cut has to come out even. Ten rows do not fit eight devices, and JAX refuses them at once: pad and mask (lesson 06), or
# choose the batch as a multiple of the devices.

# %%
try:
    jax.device_put(np.ones((10, 4), "float32"), eighths)
except ValueError as error:
    print("refused:", "does not evenly divide" in str(error))

# %% [markdown]
# ## What has to travel
#
# A jitted function takes the layouts of its arguments and computes where the data is. Where one device needs what another
# holds, the compiler inserts a **collective**. They stand in the text of the compiled program, so count them there.

# %%
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"


def collectives(function, *args):
    """The collectives in the compiled program of a call, by kind."""
    text = jax.jit(function).lower(*args).compile().as_text()
    return dict(Counter(re.findall(rf"\b({KINDS})(?:-start)?\(", text)))


# %%
programs = {
    "sin(x)": jnp.sin,
    "x @ w": lambda x: x @ np.ones((4, 3), "float32"),
    "sum over columns": lambda x: x.sum(axis=1),
    "sum over rows": lambda x: x.sum(axis=0),
    "standardised": lambda x: (x - x.mean(axis=0)) / x.std(axis=0),
    "rows reversed": lambda x: x[::-1],
}
question = "Six programs on an array that is cut by rows. How many of them communicate?"
guess = predict("11-S2", question, [1, 3, 4, 6])

# %% claims=["S2"]
found = {name: collectives(program, by_rows) for name, program in programs.items()}
for name, kinds in found.items():
    print(f"{name:17} {kinds or 'stays local'}")
guess.reveal(sum(bool(kinds) for kinds in found.values()))

# %% [markdown]
# The rule: work along axes that are not cut is local, whatever it costs. A reduction, or any contraction, **over** a cut axis
# needs everyone's part. `x @ w` contracts the columns, which each device has whole. (Standardising needs two: the spread comes
# after the mean.)

# %% [markdown]
# ### The type says it
#
# `make_mesh` makes **explicit** axes today. Then the layout is part of the array's type, next to shape and dtype, and is
# worked out while JAX traces. Where the layout of a result is not determined, JAX does not guess.

# %% claims=["S2"]
print(jax.typeof(by_rows), jax.typeof(by_rows.sum(axis=1)), jax.typeof(by_rows.sum(axis=0)))
try:
    by_rows.T @ by_rows
except Exception as error:  # noqa: BLE001  its class is not public
    print(type(error).__name__)

# %% [markdown]
# The contraction is over the cut axis, and the sum could be left on every device or cut again. Say which, with
# `out_sharding`: one all-reduce for a copy everywhere.


# %% claims=["S2"]
def gram(x, where):
    return jnp.einsum("ni,nj->ij", x, x, out_sharding=where)


print(jax.typeof(jax.jit(gram, static_argnums=1)(by_rows, whole)))
print(collectives(lambda x: gram(x, whole), by_rows))

# %% [markdown]
# With **auto** axes the compiler decides, silently, and the type says nothing. Tutorials up to 2025 mean such a mesh. Code
# that worked with one may raise with the other ([2026](https://github.com/marin-community/marin/pull/5278)): here
# `shard_map`, which the next section is about, gets an array that was never placed.

# %%
auto = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def total(mesh, x):
    add = jax.shard_map(lambda v: jax.lax.psum(v.sum(), "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
    try:
        return float(add(x))
    except ValueError as error:
        return type(error).__name__


numbers = jnp.arange(8.0)
print("auto:    ", total(auto, numbers), " type:", jax.typeof(jax.device_put(small, NamedSharding(auto, P("data")))))
print("explicit:", total(mesh, numbers), " placed first:", total(mesh, jax.device_put(numbers, eighths)))

# %% [markdown]
# Now the opening. Count the collectives of the training step, once as it was placed and once with the parameters on every
# device.

# %% claims=["S2"]
copied = jax.device_put(first, whole)
as_placed, repaired = collectives(step, spread, x8, y8), collectives(step, copied, x8, y8)
print("everything in eighths:", as_placed)
print("parameters copied:    ", repaired)
gathered = as_placed.get("all-gather", 0) == len(first) and "all-gather" not in repaired
guess_moved.reveal("the parameters" if gathered else "the rows")

# %% [markdown]
# The `device_put` took the whole tree, so it cut the weights too, and every step gathers both of them. Not an error: it is
# how models that do not fit on one device are trained. You save memory and pay with traffic. Here nobody meant to. The
# all-reduce that stays is the sum of the gradients, and data-parallel training has to have it.
#
# Is it faster than one device now?

# %%
pairs = [(seconds(compiled, first, x, y), seconds(compiled, copied, x8, y8)) for _ in range(40)]
on_one, on_eight = np.median(pairs, axis=0)
print("still slower on eight devices:", bool(on_eight > on_one))

# %% [markdown]
# Not here, and it could not be. The layout decides what travels; whether eight devices pay is decided by the work that each
# of them has, and 32 small rows are none. Count first, then measure on the machine that you have.

# %% [markdown]
# ### Another layout is another program
#
# In lesson 05 the placement was a row in the table of what keys the cache. Here is that row with eight devices: one function,
# four calls, equal numbers.

# %%
double = watch(jax.jit(lambda x: 2 * x))
layouts = [P(), P("data"), P("data"), P(None, "data")]
question = "The same 16 x 8 array, placed by P(), P('data'), P('data'), P(None, 'data'). How many compiles?"
guess = predict("11-S6", question, [1, 2, 3, 4])

# %% claims=["S6"]
wide = np.ones((16, 8), "float32")
for spec in layouts:
    double(jax.device_put(wide, NamedSharding(mesh, spec)))
for again in explain(double):
    print(again.step, *again.changes)
guess.reveal(double.counts.compiles)

# %% [markdown]
# Each layout is a contract of its own, here with a trace, because explicit axes stand in the type. It happens by accident in
# the second step of a loop: only the batch is placed, and the parameters come back with another layout than they went in with.
# An auto mesh lets it pass.


# %% claims=["S6"]
def compiles_of_four_steps(params):
    placed = jax.device_put((x, y), NamedSharding(auto, P("data")))
    counted = watch(jax.jit(lambda params, x, y: step(params, x, y)))
    for _ in range(4):
        params, value = counted(params, *placed)
        value.block_until_ready()
    return counted


unplaced = compiles_of_four_steps(jax.device_put(first))
placed = compiles_of_four_steps(jax.device_put(first, NamedSharding(auto, P())))
print("parameters left where they were:", unplaced.counts.compiles, "compiles,", *explain(unplaced)[0].changes[:1])
print("parameters placed first:        ", placed.counts.compiles)

# %% [markdown]
# Place **all** of the state before the loop: parameters, optimizer state, key. With explicit axes the first variant raises
# instead, at its first step.

# %% [markdown]
# ## One body, eight blocks
#
# `jax.jit` sees global arrays, and the compiler does the talking. `jax.shard_map` is the other view: you write what **one**
# device does with its block, and the collectives yourself. `in_specs` cuts the arguments, `out_specs` puts the results together.

# %%
seen_inside = []


def body(block):
    seen_inside.append(block.shape)
    return jax.lax.psum(block.sum(axis=0), "data")


column_sums = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P()))
question = "by_rows is (16, 4) on eight devices. What is in seen_inside after one call?"
choices = ["[(16, 4)]", "[(2, 4)]", "eight times (2, 4)"]
guess = predict("11-S3", question, choices)

# %% claims=["S3"]
result = column_sums(by_rows)
print("global:", by_rows.shape, "  in the body:", seen_inside, "  result:", result.shape)
print("right:", np.array_equal(result, small.sum(axis=0)), "  in the program:", collectives(column_sums, by_rows))
guess.reveal(str(seen_inside) if len(seen_inside) == 1 else choices[2])

# %% [markdown]
# One trace, one program, eight devices that run it with different blocks. `psum` is the all-reduce, and now *you* have
# written it. Leave it out, and the body returns a local sum. With `out_specs=P()` you claim that all devices have the same
# result, and JAX checks that claim.

# %% claims=["S3"]
try:
    jax.shard_map(lambda block: block.sum(axis=0), mesh=mesh, in_specs=P("data"), out_specs=P())(by_rows)
except ValueError as error:
    print("refused:", "can't be statically inferred" in str(error))


def local_sums(check):
    """Eight local sums, of which out_specs claims that they are one."""
    return jax.shard_map(lambda block: block.sum(axis=0), mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=check)


print("unchecked:", local_sums(False)(by_rows).tolist(), " should be", small.sum(axis=0).tolist())

# %% [markdown]
# The check is of types: a value **varies** along a mesh axis or it does not (`{V:data}` in a type). With `check_vma=False` one
# device's sum is taken for all, without a word. Leave the check on.

# %% [markdown]
# ### An axis is not a device
#
# `jax.vmap` can name an axis too, and the same body runs in it, `psum` and all. It looks like eight devices. Is it?

# %%
blocks = small.reshape(8, 2, 4)
question = "vmap(body, axis_name='data') over eight blocks: devices used, collectives in the program?"
guess = predict("11-S8", question, ["8 and 1", "8 and 0", "1 and 0"])

# %% claims=["S8"]
mapped = jax.vmap(body, axis_name="data")
result = mapped(blocks)
used, talked = len(result.devices()), sum(collectives(mapped, blocks).values())
print("the same sums:", np.array_equal(result[0], small.sum(axis=0)), "  shape:", result.shape)
guess.reveal(f"{used} and {talked}")

# %% [markdown]
# `vmap` adds an axis, no hardware: one device computes the eight blocks, and `psum` is a sum along the new axis. That makes it
# a good way to *test* such a body on a machine with one device, and no way to make it faster.
#
# ### pmap, to read old code
#
# `jax.pmap` was there before `shard_map`. Its arguments have a leading axis of **one entry for each device**, and the body does
# not see it. A global batch is reshaped by hand first, and a batch that is wrong by the number of devices is the usual error.

# %% claims=["S3"]
seen_inside.clear()
print("pmap:", jax.pmap(body, axis_name="data")(blocks).shape, "  in the body:", seen_inside)
try:
    jax.pmap(body, axis_name="data")(small)
except ValueError as error:
    print("(16, 4) as it is:", type(error).__name__)

# %% [markdown]
# ## Who adds up the gradient
#
# First the fact that all of this serves: a data-parallel step is the one-device step, up to the order of additions. With `jit`
# there is nothing to write. `loss` is the mean over the *global* rows, so its gradient is too.

# %% claims=["S4"]
parallel, value = train(copied, x8, y8)
gaps = jax.tree.map(lambda a, b: float(np.abs(np.asarray(a) - np.asarray(b)).max()), parallel, one)
print("ten steps, within 1e-5:", max(gaps.values()) < 1e-5, "  loss", round(value, 3), round(loss_of_one, 3))

# %% [markdown]
# In `shard_map` it depends. Take the smallest case: `w = 1`, one number `d` on each device, 1 to 8, loss `w² · d`. The
# gradient of the global mean is `2 · 4.5 = 9`. Inside the body you have a local loss; so you take its gradient, and then
# `pmean`, as all the old tutorials do.


# %%
def local_loss(w, d):
    return jnp.mean(w**2 * d)


def mean_of_gradients(w, d):
    return jax.lax.pmean(jax.grad(local_loss)(w, d), "data")


w, d = jax.device_put(jnp.float32(1), whole), jax.device_put(jnp.arange(1.0, 9.0), eighths)
question = "grad, then pmean, in shard_map, with w replicated. The right gradient is 9. What comes out?"
guess = predict("11-J02", question, ["9", "72", "it raises"])


# %% claims=["S4"]
def in_shard_map(body, check_vma=True):
    """What each of the eight devices has as gradient."""
    wrapped = jax.shard_map(
        lambda w, d: body(w, d) + 0 * d, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"), check_vma=check_vma
    )
    return [int(g) for g in jax.jit(wrapped)(w, d)]


came_out = in_shard_map(mean_of_gradients)
print(came_out)
guess.reveal(str(came_out[0]))

# %% [markdown]
# Eight times too much. `w` does not vary, the local loss does, so on the way back JAX has to add the eight contributions: it
# inserts a `psum` **inside** `grad`. The result does not vary any more, and `pmean` of eight equal numbers changes nothing.
# Per-example gradients are hit the same way ([2026](https://github.com/jax-ml/jax/issues/36886)). Two ways out:


# %% claims=["S4"]
def varying(w, d):
    w = jax.lax.pcast(w, "data", to="varying")  # each device's own copy: no sum is inserted
    return jax.lax.pmean(jax.grad(local_loss)(w, d), "data")


def mean_inside(w, d):
    return jax.grad(lambda w: jax.lax.pmean(local_loss(w, d), "data"))(w)  # the global loss itself


print("varying, then pmean:", in_shard_map(varying))
print("gradient of pmean:  ", in_shard_map(mean_inside))

# %% [markdown]
# And the same bodies without the check, or under `pmap`? There nothing is inserted, and the transpose of `psum` is `psum`
# again: the cotangents are summed, the local factor stays ([2020](https://github.com/jax-ml/jax/issues/3970)).

# %%
bodies = {"grad": jax.grad(local_loss), "grad, pmean": mean_of_gradients, "grad of pmean": mean_inside}
question = "'grad of pmean' under check_vma=False: what do the eight devices have?"
guess = predict("11-J01", question, ["9 each", "72 each", "2, 4, 6, … 16"])

# %% claims=["S4"]
rows_of_table = {"jit, global loss": [int(jax.jit(jax.grad(local_loss))(w, d))] * 8}
for name, body_of in bodies.items():
    rows_of_table[f"shard_map           {name}"] = in_shard_map(body_of)
    rows_of_table[f"shard_map unchecked {name}"] = in_shard_map(body_of, check_vma=False)
    legacy = jax.pmap(body_of, axis_name="data", in_axes=(None, 0))
    rows_of_table[f"pmap                {name}"] = [int(g) for g in legacy(w, jnp.arange(1.0, 9.0)[:, None])]
for name, got in sorted(rows_of_table.items()):
    print(f"{name:34} {'right' if got == [9] * 8 else 'WRONG'}  {sorted(set(got))}")
silent = rows_of_table["shard_map unchecked grad of pmean"]
guess.reveal("2, 4, 6, … 16" if silent == list(range(2, 17, 2)) else f"{silent[0]} each")

# %% [markdown]
# Keep this page:
#
# | where | who adds up | so write |
# |---|---|---|
# | `jit` | the compiler | the global loss, and nothing else |
# | `shard_map` (checked) | `grad`, for every argument that does not vary | `grad` of `pmean(loss)`; or `pcast` to varying, `grad`, `pmean` |
# | `shard_map`, `check_vma=False` | you | `grad` of the local loss, then `pmean` |
# | `pmap` (legacy) | you | the same |
#
# A body that moves from `pmap` to `shard_map` changes its meaning.

# %% [markdown]
# ## Two processes
#
# On a cluster each machine runs its own Python, and all run the same program. `jax.distributed.initialize` connects them; after
# that `jax.devices()` has the devices of all, and a global array has parts that this process cannot read. Here are two
# processes with four devices each. The code of `loss` and `step` is the one above.

# %%
import inspect

START = """
import json, sys
import jax
port, me, patience = map(int, sys.argv[1:])
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 4)
try:
    jax.distributed.initialize(
        f"127.0.0.1:{port}", num_processes=2, process_id=me, initialization_timeout=patience
    )
except Exception as error:  # noqa: BLE001  its class is not public
    print(json.dumps({"caught": type(error).__name__}))
    raise
import jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from traceonce.data import digits
"""
MODEL = inspect.getsource(loss) + inspect.getsource(step)

# %%
WORK = """
mesh = jax.make_mesh((8,), ("data",))
rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
mine = slice(128 * me, 128 * me + 128)                  # this process loads its half of the batch
x, y = (jax.make_array_from_process_local_data(rows, part[mine]) for part in digits())
draw = np.random.default_rng(0).normal
first = {"w1": draw(0, 0.1, (64, 32)), "w2": draw(0, 0.1, (32, 10))}
params = {name: jax.device_put(leaf.astype("float32"), whole) for name, leaf in first.items()}
compiled = jax.jit(step)
for _ in range(10):
    params, value = compiled(params, x, y)
    value.block_until_ready()
index = jax.shard_map(lambda v: jax.lax.axis_index("data")[None], mesh=mesh, in_specs=P("data"), out_specs=P("data"))(y)
report = {"global": x.shape, "here": [s.data.shape for s in x.addressable_shards], "loss": float(value)}
report["local"] = list(range(jax.local_device_count()))
report["axis_index"] = [int(s.data[0]) for s in index.addressable_shards]
report["readable"] = x.is_fully_addressable
print(json.dumps(report))
"""

# %% [markdown]
# The first process is also the **coordinator**, which the others have to find: an address and a free port, here on this
# machine alone. `launch` starts the processes, waits for a bounded time, and leaves none behind.

# %%
import json
import socket

PROGRAM = START + MODEL + WORK


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(members, patience):
    """The processes of these members of a group of two."""
    port = free_port()
    command = [sys.executable, "-c", PROGRAM, str(port)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return {me: subprocess.Popen([*command, str(me), str(patience)], **pipes) for me in members}


# %%
def report_of(me, process, limit):
    """What this member reports, or a sentence that says how it failed."""
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"process {me} of 2 is not done after {limit} s") from None
    reports = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if process.returncode:
        why = next((line for line in err.splitlines() if "DEADLINE" in line), err[-200:])
        why = why.partition("absl::Status: ")[2] or why
        raise RuntimeError(f"process {me} of 2 ended with {process.returncode}, reports {reports}: {why}")
    return reports


# %%
def launch(members, patience, limit=50):
    """The reports of all members; where one fails, its sentence, and the others are ended."""
    processes = start(members, patience)
    try:
        return {me: report_of(me, process, limit) for me, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


# %%
question = "Both ask for their local device numbers, and for lax.axis_index in a shard_map. What repeats?"
choices = ["neither", "the local numbers", "both"]
guess = predict("11-S5", question, choices)

# %% claims=["S7", "S5"]
(first_report,), (second_report,) = launch([0, 1], patience=40).values()
for name in ("global", "here", "readable", "local", "axis_index"):
    print(f"{name:10}", first_report[name], "|", second_report[name])
together = [first_report["loss"], second_report["loss"]]
print("loss of one process, within 1e-5:", max(abs(value - loss_of_one) for value in together) < 1e-5)
repeats = [first_report[name] == second_report[name] for name in ("local", "axis_index")]
guess.reveal(choices[sum(repeats)])

# %% [markdown]
# Each process loaded 128 rows, and both hold a global array of 256, of which they can read four blocks. The step is the same
# source, its loss the same number.
#
# The **local** numbers repeat. A key that is folded with one gives two devices the same noise, and nothing on one machine
# shows it. `axis_index` counts along the whole mesh.

# %% claims=["S5"]
key = jax.random.key(7)
for name in ("local", "axis_index"):
    numbers = first_report[name] + second_report[name]
    keys = {tuple(jax.random.key_data(jax.random.fold_in(key, n)).tolist()) for n in numbers}
    print(f"keys folded with {name:10} {len(numbers)} devices, {len(keys)} keys")

# %% [markdown]
# ### When the other one is missing
#
# A peer that was not started, or cannot be reached, is a common fault of such a job
# ([2023](https://github.com/ayaka14732/llama-2-jax/issues/20)). The program waits for `initialization_timeout` seconds, 300 by
# default, and its `initialize` stands in a `try`. Start process 0 alone:

# %%
question = "Process 0 alone, 2 seconds patience. What does its `except Exception` get?"
guess = predict("11-Q3", question, ["a RuntimeError", "nothing: the process dies"])

# %% claims=["S7"]
try:
    launch([0], patience=2)
except RuntimeError as error:
    said = str(error).splitlines()[0]
    print(said)
guess.reveal("a RuntimeError" if "caught" in said else "nothing: the process dies")

# %% [markdown]
# JAX 0.11 ends the process from C++: exit code −6, no traceback, nothing to catch. (In older releases it was an exception.) So
# the launcher must watch exit codes, say which member failed and why, and end the others. Process 0 waits in vain here because
# of somebody else: look for the member that is **not** in the logs.

# %% [markdown]
# ## Break it
#
# A step with dropout, in `shard_map`. The key is an argument, replicated, as everything small is. `key_uses` counts what is
# done with it.


# %%
def dropped(key, x):
    return jax.random.bernoulli(key, 0.5, x.shape) * x


def on_each(body):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data")))


def masks_and_reuse(body):
    with key_uses() as uses:
        ones = on_each(body)(jax.device_put(uses.watch(jax.random.key(7)), whole), jnp.ones_like(x8))
    different = len({block.tobytes() for block in np.split(np.asarray(ones), 8)})
    return different, uses.reused


# %%
question = "Eight devices drop inputs with this key. How many different masks?"
guess = predict("11-S5b", question, [1, 2, 8])

# %% claims=["S5"]
different, reused = masks_and_reuse(dropped)
print("different masks:", different, "  keys used more than once:", reused)
guess.reveal(different)

# %% [markdown]
# One body, one key, eight equal masks: a batch of 256 with the noise of 32. No shape is wrong, and nothing raises.
#
# The second fault comes with the short batch. 250 rows are padded to 256, so the last device has 26 rows and the others 32. Each
# device computes the mean over *its* valid rows, and `pmean` joins them.


# %%
def losses_of(x, y):
    scores = jax.nn.log_softmax(jnp.tanh(x @ first["w1"]) @ first["w2"])
    return -jnp.sum(scores * jax.nn.one_hot(y, 10), axis=1)


def mean_of_means(x, y, valid):
    return jax.lax.pmean(jnp.sum(losses_of(x, y) * valid) / jnp.sum(valid), "data")


valid = np.arange(256) < 250
expected = float(np.asarray(losses_of(x, y), "float64")[valid].mean())


def evaluated(body):
    mapped = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P()))
    return float(mapped(x8, y8, jax.device_put(valid, eighths)))


print("mean of local means is right, within 1e-5:", abs(evaluated(mean_of_means) - expected) < 1e-5)

# %% [markdown]
# ## Repair it
#
# The noise first. `fold_in` with the index along the mesh makes a key for each device, and `key_uses` has nothing to say.


# %% claims=["S5"]
def per_device(key, x):
    return dropped(jax.random.fold_in(key, jax.lax.axis_index("data")), x)


print("different masks, reused keys:", masks_and_reuse(per_device))

# %% [markdown]
# But now the noise of a row depends on how many devices there are: on four, the run is another run. The identity that stays
# is the row's own **global number** (lesson 02). Under `jit` there is nothing to do: a draw of the global shape is the same
# numbers in any layout, and each device makes its own part.


# %%
def per_row(key, x):
    rows = jax.lax.axis_index("data") * len(x) + jnp.arange(len(x))
    return jax.vmap(lambda row, v: dropped(jax.random.fold_in(key, row), v))(rows, x)


def on_devices(count, body):
    """The result of a body on the first `count` devices."""
    few = jax.make_mesh((count,), ("data",), devices=jax.devices()[:count])
    cut = jax.shard_map(body, mesh=few, in_specs=(P(), P("data")), out_specs=P("data"))
    placed = jax.device_put(x, NamedSharding(few, P("data")))
    return np.asarray(jax.jit(cut)(jax.device_put(jax.random.key(7), NamedSharding(few, P())), placed))


question = "Masks on 4 devices against masks on 8: for which bodies are they equal?"
guess = predict("11-S5c", question, ["per_device", "per_row", "both", "neither"])

# %% claims=["S5"]
equal = [body.__name__ for body in (per_device, per_row) if np.array_equal(on_devices(4, body), on_devices(8, body))]
print("equal on 4 and 8 devices:", equal)
guess.reveal("both" if len(equal) == 2 else equal[0] if equal else "neither")
alone = jax.jit(dropped)(jax.random.key(7), x)
spread_out = jax.jit(dropped)(jax.device_put(jax.random.key(7), whole), x8)
print("jit, one device and eight:", np.array_equal(alone, spread_out), collectives(dropped, key, x8))


# %% [markdown]
# The mean: add up sums and counts, and divide once. One `psum` takes both. How often do they travel? Counts are integers, unless you say
# otherwise.


# %%
def rows_mean(dtype):
    def mean_of_rows(x, y, valid):
        total, count = jax.lax.psum((jnp.sum(losses_of(x, y) * valid), jnp.sum(valid, dtype=dtype)), "data")
        return total / count

    return mean_of_rows


# %% claims=["S4"]
for dtype in ("int32", "float32"):
    right = abs(evaluated(rows_mean(dtype)) - expected) < 1e-5
    mapped = jax.shard_map(rows_mean(dtype), mesh=mesh, in_specs=P("data"), out_specs=P())
    found = collectives(mapped, x8, y8, jax.device_put(valid, eighths))
    print(f"counts in {dtype:7} within 1e-5: {right}  {found}")

# %% [markdown]
# The compiler merges sums that are ready together and have one dtype. Count in float32, and one message carries all.

# %% [markdown]
# ## In the wild
#
# **Read a real loop** (10 minutes). Open Equinox's
# [example for several GPUs](https://github.com/patrick-kidger/equinox/blob/00b9e32002bff2f0e476a74248e1f1a0dfea792a/examples/parallelism.ipynb).
# It is from 2023, and short.
#
# 1. Which arrays are placed, and which are not?
# 2. How often is `make_step` compiled in ten steps?
# 3. `PositionalSharding` is gone from JAX. What would you write, and which axis types?
# 4. The comment says that `batch_size` must be a multiple of the devices. What says so if it is not?
#
# Then run its situation in small, in the next cell.

# %%
question = "Batch placed, model not, explicit mesh (today's default). What do you expect?"
guess = predict("11-Q2", question, ["it runs, one compile", "it runs, two compiles", "it raises"])

# %%
try:
    train(jax.device_put(first), x8, y8, steps=2)
    guess.reveal("it runs, one compile")
except Exception as error:  # noqa: BLE001  its class is not public
    print(type(error).__name__)
    guess.reveal("it raises")

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. `x` and `y`. The model and the optimizer's state stay uncommitted on the first device.
# 2. Twice: the state comes back replicated, which is another layout.
# 3. `NamedSharding(mesh, P("data"))`. With `AxisType.Auto` the loop runs as it is; with explicit axes place model and
#    optimizer state first, which also saves the second compile.
# 4. `device_put`, with the error of the ten rows.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these was reported from somebody's own work, and you have run it above.
#
# | report | what was seen | section |
# |---|---|---|
# | [jax#6887](https://github.com/jax-ml/jax/issues/6887) | devices asked for too late | Before you run |
# | [marin#5278](https://github.com/marin-community/marin/pull/5278) | explicit axes by default: `in_specs` do not match | The type says it |
# | [jax#3970](https://github.com/jax-ml/jax/issues/3970) | `psum` inside `grad` under `pmap` | Who adds up the gradient |
# | [jax#36886](https://github.com/jax-ml/jax/issues/36886) | gradients come out summed over devices | Who adds up the gradient |
# | [jax#15924](https://github.com/jax-ml/jax/issues/15924) | placed weights compile again | Another layout |
# | [llama-2-jax#20](https://github.com/ayaka14732/llama-2-jax/issues/20) | DEADLINE_EXCEEDED: peers are missing | Two processes |
# | [scalax#6](https://github.com/young-geng/scalax/issues/6) | one dropout key for all devices? Under `jit` yes, in `shard_map` no | Repair it |

# %% [markdown]
# ## Recap
#
# - Ask for devices before JAX starts. Where the bytes are stands in the type, and in `layout`.
# - Work along uncut axes is local; over a cut axis it communicates. Count collectives in the compiled text.
# - Cut the batch, copy the parameters, place all state before the loop: another layout compiles again.
# - `jit` adds up gradients for you, checked `shard_map` inside `grad`, unchecked and `pmap` not at all.
# - Means over devices: sums and counts. Keys: fold in the row's own number.
# - Processes: time-outs, exit codes, and who is missing. `vmap` is not a device.

# %% [markdown]
# ## Lab
#
# [Lab 11](../../labs/lab11_devices.ipynb) gives you the digits, eight devices and a training step that was spread carelessly.
# You place it, write the step in both views, and give each replica its own noise, with exactly as many collectives as are
# needed. About 35 minutes.
