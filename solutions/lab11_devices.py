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
#     lab: lab11_devices
# ---

# %% [markdown]
# # Lab 11 · Placement is state too
#
# ## Situation
#
# A classifier of digits was moved to eight devices in an afternoon. It trains, and the curves are not quite those of one
# device: the step is slower, the last batch of an epoch pulls too hard, and dropout helps less than it did. People have
# reported each cause: [gradients that come out summed over devices](https://github.com/jax-ml/jax/issues/36886),
# [a sum that is taken twice](https://github.com/jax-ml/jax/issues/3970),
# [one dropout key for all replicas](https://github.com/young-geng/scalax/issues/6).
#
# You place the data, write the step with **one** collective, and give each row its own noise. About 35 minutes, on eight
# CPU devices.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones. They use other rows and parameters, batches that leave whole devices without a row, and
# look at layouts and at the compiled programs.

# %% nbgrader={"grade": false, "grade_id": "given_devices", "locked": true, "schema_version": 3, "solution": false, "task": false}
import re
from collections import Counter
from functools import cache, partial

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)  # before anything is computed

import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from traceonce import watch
from traceonce.data import digits

MESH = jax.make_mesh((8,), ("data",))
BATCH = 64

# %% nbgrader={"grade": false, "grade_id": "given_model", "locked": true, "schema_version": 3, "solution": false, "task": false}
pixels, labels = digits()
params = {"w": np.zeros((64, 10), "float32"), "b": np.linspace(1, -1, 10, dtype="float32")}


def row_results(params, x, y):
    """For each row its loss, and whether the largest score is its digit's: x (n, 64), y (n,)."""
    scores = jax.nn.log_softmax(x @ params["w"] + params["b"])
    return -jnp.sum(scores * jax.nn.one_hot(y, 10), axis=1), jnp.argmax(scores, axis=1) == y


# %% nbgrader={"grade": false, "grade_id": "given_looks", "locked": true, "schema_version": 3, "solution": false, "task": false}
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"


def lies(array):
    """How an array lies: on how many devices, the shape of a block, and whether each device has all of it."""
    where = array.sharding
    return {
        "devices": len(where.device_set),
        "block": where.shard_shape(array.shape),
        "whole": array.is_fully_replicated,
    }


# %% nbgrader={"grade": false, "grade_id": "given_counts", "locked": true, "schema_version": 3, "solution": false, "task": false}
def collectives(compiled, *args):
    """The collectives in the program of a call of a jitted function, by kind."""
    return dict(Counter(re.findall(rf"\b({KINDS})(?:-start)?\(", compiled.lower(*args).compile().as_text())))


def put(tree, axes, mesh=MESH):
    """`tree` on the devices of a mesh, by a PartitionSpec of these axes."""
    return jax.device_put(tree, NamedSharding(mesh, P(*axes)))


# %% [markdown]
# ## Task 1 · place
#
# *7 minutes.* `place(params, x, y)` brings NumPy arrays onto the eight devices of `MESH` for data-parallel training. A batch has 1
# to `BATCH` rows and is padded with zeros to `BATCH`, so that there is one shape. It returns `params, x, y, valid`, where
# `valid` is True for the rows that are real. Each device has an eighth of the rows, in order, and all of the parameters.
#
# Look back at [Where the bytes live](../course/11_devices/11_devices.ipynb#Where-the-bytes-live).
#
# <details><summary>If a size is not divisible</summary>
#
# One sharding for the whole tree cuts the parameters too. Two calls of `jax.device_put`, with two specs.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "place", "locked": false, "schema_version": 3, "solution": true, "task": false}
def place(params, x, y):
    """params whole on each device; x (64, 64), y (64,) and valid (64,) in eighths."""
    ### BEGIN SOLUTION
    missing = BATCH - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(BATCH) < len(x)
    return jax.device_put(params, NamedSharding(MESH, P())), *jax.device_put(rows, NamedSharding(MESH, P("data")))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_placed", "locked": true, "schema_version": 3, "solution": false, "task": false}
def placed(params, x, y):
    """What `place` gives: the values, and how they lie."""
    result = tuple(place(params, x, y))
    return result, jax.tree.map(lies, result)


# %% nbgrader={"grade": true, "grade_id": "test_place", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
from traceonce import layout

(_, got_x, _, got_valid), (of_params, of_x, of_y, of_valid) = placed(params, pixels[:20], labels[:20])
assert got_x.shape == (64, 64), f"expected 20 rows padded to shape (64, 64); got {got_x.shape}."
assert int(got_valid.sum()) == 20, f"expected 20 valid rows; got {int(got_valid.sum())}."
assert of_x["block"] == (8, 64), f"expected 8 rows on each device, a block of (8, 64); got {of_x['block']}."
assert of_params["w"] == {"devices": 8, "block": (64, 10), "whole": True}, (
    f"expected w whole on 8 devices; got {of_params['w']}."
)
print(layout(got_x))
print("Task 1: the visible asserts pass. Hidden ones look at every array, and at other batches.")

# %% [markdown]
# ## Task 2 · train_step
#
# *14 minutes, the heart of the lab.* One step of SGD on arrays as Task 1 places them: the new parameters, and `{"loss": ..., "accuracy":
# ...}` from before the update. Loss, accuracy and gradient are means over the **valid** rows of the whole batch. There is at
# least one; some devices may have none.
#
# It runs under `jit`, compiled once for all steps, in `jax.shard_map` or without, and its program has exactly one collective:
# **one all-reduce**.
#
# Look back at [Who adds up the gradient](../course/11_devices/11_devices.ipynb#Who-adds-up-the-gradient)
# and [Repair it](../course/11_devices/11_devices.ipynb#Repair-it).

# %% [markdown]
# <details><summary>If there are two</summary>
#
# Add up sums, of losses and gradients, and divide after: a count that is needed before the backward pass is a second trip. The
# compiler merges what travels together and has one dtype: count in float32.
#
# </details>

# %% [markdown]
# <details><summary>If the gradient is eight times too large, or local</summary>
#
# In `shard_map`, parameters do not vary, so `grad` adds up their gradient itself: a `psum` on top is wrong. After
# `jax.lax.pcast(params, "data", to="varying")` it is local, and the sum is yours to write.
#
# </details>
#
# <details><summary>If it raises a ShardingTypeError</summary>
#
# `MESH` has explicit axes. A contraction over rows (`@`, `jnp.vdot`) has to say where its result lies; `jnp.sum` does not.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "train_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_step(params, x, y, valid, lr):
    """(new params, {"loss", "accuracy"}) of one step over all valid rows."""
    ### BEGIN SOLUTION

    def sum_of_losses(params, x, y, valid):
        losses, right = row_results(params, x, y)
        return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)

    def on_each_device(params, x, y, valid, lr):
        mine = jax.lax.pcast(params, "data", to="varying")
        (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(mine, x, y, valid)
        count = jnp.sum(valid, dtype=jnp.float32)
        loss, right, count, grads = jax.lax.psum((loss, right, count, grads), "data")
        new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
        return new, {"loss": loss / count, "accuracy": right / count}

    rows = P("data")
    specs = (P(), rows, rows, rows, P())
    return jax.shard_map(on_each_device, mesh=MESH, in_specs=specs, out_specs=P())(params, x, y, valid, lr)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_steps", "locked": true, "schema_version": 3, "solution": false, "task": false}
@jax.jit
def counted_step(params, x, y, valid, lr):
    return train_step(params, x, y, valid, lr)


def take_steps(params, batch, lr, steps):
    """The same batch several times: the last parameters, the metrics of each step, how the parameters lie, collectives."""
    history, first = [], params
    for _ in range(steps):
        params, metrics = jax.block_until_ready(counted_step(params, *batch, lr))
        history.append(metrics)
    return params, history, jax.tree.map(lies, params), collectives(counted_step, first, *batch, lr)


def steps_on(params, batch, lr, steps, whole, cut):
    """As `take_steps`, on arrays that are placed here."""
    return take_steps(put(params, whole), put(batch, cut), np.float32(lr), steps)


# %% nbgrader={"grade": true, "grade_id": "test_train_step", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
start, *batch = place(params, pixels[:20], labels[:20])
with watch() as seen:
    new, history, of_params, found = take_steps(start, batch, np.float32(0.5), 2)
losses, right = row_results(params, pixels[:20], labels[:20])
loss, accuracy = float(history[0]["loss"]), float(history[0]["accuracy"])
assert abs(loss - float(losses.mean())) < 1e-4, (
    f"expected {losses.mean():.3f}, the mean of the 20 rows; got {loss:.3f}."
)
assert abs(accuracy - float(right.mean())) < 1e-6, f"expected accuracy {right.mean():.2f}; got {accuracy:.2f}."
slope = jax.grad(lambda b: row_results(params | {"b": b}, pixels[:20], labels[:20])[0].mean())(params["b"])
once = counted_step(start, *batch, np.float32(0.5))[0]
assert np.allclose(once["b"], params["b"] - 0.5 * slope, atol=1e-5), "expected b to move as on one device."
assert found == {"all-reduce": 1}, f"expected one all-reduce; got {found}."
assert of_params["w"]["whole"], f"expected the new w whole on each device; got {of_params['w']}."
compiles = seen["counted_step"].compiles
assert compiles == 1, f"expected one compile for two steps; got {compiles}."
print("Task 2: the visible asserts pass. Hidden ones use other batches, also with empty devices.")

# %% [markdown]
# ## Task 3 · dropped
#
# *8 minutes.* Dropout on the inputs, keep 0.75: `dropped(key, x, mesh)` divides an entry of `x` by 0.75 with probability 0.75, and
# makes it 0 otherwise. `x` is cut by rows over the axis `"data"` of `mesh`; the key is the same on all devices. Each row has noise of
# its own, from the key and its place in the *global* batch: another number of devices changes nothing. No collective, and the result
# is cut as `x` is. It runs under `jit`, for any number of rows.
#
# Look back at [Repair it](../course/11_devices/11_devices.ipynb#Repair-it).

# %% [markdown]
# <details><summary>Two ways</summary>
#
# In `shard_map`, fold in the row: a block begins at `jax.lax.axis_index("data")` times the rows of a block. Under `jit`, a draw of
# the global shape is the same in every layout.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "dropped", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dropped(key, x, mesh):
    """x with a quarter of its entries dropped, the rest divided by 0.75."""
    ### BEGIN SOLUTION

    def on_each_device(key, x):
        rows = jax.lax.axis_index("data") * len(x) + jnp.arange(len(x))
        keep = jax.vmap(lambda row: jax.random.bernoulli(jax.random.fold_in(key, row), 0.75, x.shape[1:]))(rows)
        return jnp.where(keep, x / 0.75, 0)

    return jax.shard_map(on_each_device, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_dropped", "locked": true, "schema_version": 3, "solution": false, "task": false}
@cache
def compiled_dropped(count):
    mesh = jax.make_mesh((count,), ("data",), devices=jax.devices()[:count])
    return mesh, jax.jit(lambda key, x: dropped(key, x, mesh))


def dropped_on(key, x, count, cut=("data",)):
    """`dropped` on the first `count` devices: the result, how it lies, and the collectives."""
    mesh, compiled = compiled_dropped(count)
    args = put(key, (), mesh), put(x, cut, mesh)
    result = jax.block_until_ready(compiled(*args))
    return result, lies(result), collectives(compiled, *args)


# %% nbgrader={"grade": true, "grade_id": "test_dropped", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
ones = np.ones((64, 64), "float32")
noisy, how, found = dropped_on(jax.random.key(7), ones, 8)
kept = np.asarray(noisy) > 0
assert 0.7 < kept.mean() < 0.8, f"expected about 0.75 of the entries kept; got {kept.mean():.2f}."
different = len({block.tobytes() for block in np.split(kept, 8)})
assert different == 8, f"expected 8 different masks on 8 devices; got {different}."
assert np.array_equal(dropped_on(jax.random.key(7), ones, 4)[0], noisy), "expected the same result on 4 devices."
assert not found, f"expected no collective; got {found}."
print("Task 3: the visible asserts pass. Hidden ones use other keys, rows and meshes.")

# %% [markdown]
# ## Task 4 · Several processes
#
# *6 minutes.* On a cluster each process loads its own part of a global batch of `n` rows. `my_rows(n, process, processes)` is the
# **slice** of the global batch that process number `process` loads: equal parts, in order, a `ValueError` where `n` cannot be cut
# evenly. `row_keys(key, n, process, processes)` is an array of keys, one for each of these rows. A row's key depends on `key` and
# on its global number alone: not on who loads it, and not on how many there are.
#
# Look back at [Two processes](../course/11_devices/11_devices.ipynb#Two-processes).


# %% nbgrader={"grade": false, "grade_id": "processes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def my_rows(n, process, processes):
    """The slice of a global batch of n rows that this process loads."""
    ### BEGIN SOLUTION
    if n % processes:
        raise ValueError(f"{n} rows cannot be cut evenly for {processes} processes.")
    mine = n // processes
    return slice(process * mine, (process + 1) * mine)
    ### END SOLUTION


def row_keys(key, n, process, processes):
    """A key for each of these rows."""
    ### BEGIN SOLUTION
    rows = np.arange(n)[my_rows(n, process, processes)]
    return jax.vmap(partial(jax.random.fold_in, key))(rows)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_processes", "locked": true, "schema_version": 3, "solution": false, "task": false}
def loaded(n, process, processes):
    """The global numbers of the rows that this process loads."""
    return np.arange(n)[my_rows(n, process, processes)].tolist()


# %% nbgrader={"grade": true, "grade_id": "test_processes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
assert loaded(8, 0, 2) == [0, 1, 2, 3], f"expected rows 0 to 3 of 8 for the first of two; got {loaded(8, 0, 2)}."
assert loaded(8, 1, 2) == [4, 5, 6, 7], f"expected rows 4 to 7 of 8 for the second; got {loaded(8, 1, 2)}."
numbers = [jax.random.key_data(row_keys(jax.random.key(7), 8, process, 2)) for process in (0, 1)]
different = len(np.unique(np.concatenate(numbers), axis=0))
assert different == 8, f"expected 8 different keys for 8 rows; got {different}."
try:
    my_rows(10, 0, 4)
except ValueError:
    print("Task 4: the visible asserts pass. Hidden ones use other numbers of rows and processes.")
else:
    raise AssertionError("expected a ValueError for 10 rows and 4 processes.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - Where every array lies after `place`: devices, blocks, copies; and its values, for any number of rows.
# - Parameters and metrics of a step against one device, for full batches, scattered valid rows and devices without one.
# - The collectives in the compiled programs, how the results lie, and the number of compiles.
# - Masks of all replicas, on several meshes and with several keys.
# - Slices and keys of processes, against each other.
#
# ## Going further
#
# - Cut `w` by rows on purpose. How many bytes do the eight devices save, and which collectives come? (`layout`, `collectives`)
# - Write `train_step` in the other view, and compare the two programs.
# - Run your step in two processes, with `launch` of lesson 11 and `my_rows` for the data.
