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
#     lab: lab06_padding_masks
# ---

# %% [markdown]
# # Lab 06 · Shapes fixed, answers unchanged
#
# ## Situation
#
# A classifier of handwritten digits pads its last batch, so that it compiles once. Since then its curves look better: the loss
# of an epoch is lower, and the accuracy depends on the batch size. On some days the loss is finite and every weight is NaN.
# People have reported each of these: [a loss divided by the padded length](https://github.com/d2l-ai/d2l-en/issues/2076),
# [a short batch that skews the metric](https://github.com/Lightning-AI/pytorch-lightning/issues/2924),
# [a NaN from a row that nobody wanted](https://github.com/pytorch/pytorch/issues/41508).
#
# You build the pieces again, so that **no answer and no gradient depends on the padding**. About 40 minutes.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones. They vary what must not matter: how much is padded, with what (NaN, infinities, huge
# numbers, impossible labels), and in which order the rows come.

# %% nbgrader={"grade": false, "grade_id": "given_data", "locked": true, "schema_version": 3, "solution": false, "task": false}
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np

from traceonce import watch
from traceonce.data import digits

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

pixels, labels = digits()
params = {"w": np.zeros((64, 10), "float32"), "b": np.linspace(1, -1, 10, dtype="float32")}


# %% nbgrader={"grade": false, "grade_id": "given_losses", "locked": true, "schema_version": 3, "solution": false, "task": false}
def row_losses(params, x, y):
    """The squared distance of each row's ten scores to its digit's one-hot: x (n, 64), y (n,)."""
    return jnp.sum((x @ params["w"] + params["b"] - jax.nn.one_hot(y, 10)) ** 2, axis=1)


@jax.jit
def row_results(params, x, y):
    """For each row its loss, and whether the largest score is its digit's."""
    scores = x @ params["w"] + params["b"]
    return row_losses(params, x, y), jnp.argmax(scores, axis=1) == y


# %% nbgrader={"grade": false, "grade_id": "given_padding", "locked": true, "schema_version": 3, "solution": false, "task": false}
def padded_batch(rows, size, fill=0.0, label=0):
    """The digits `rows`, padded to `size` rows: x (size, 64), y (size,), and which rows are valid."""
    x = np.full((size, 64), fill, "float32")
    y = np.full(size, label, "int32")
    x[: len(rows)], y[: len(rows)] = pixels[rows], labels[rows]
    return x, y, np.arange(size) < len(rows)


five = padded_batch(range(5), 8)
hostile = padded_batch(range(5), 8, fill=np.nan, label=99)
nothing = padded_batch([], 8)
losses = np.asarray(row_results(params, *five[:2])[0], "float64")
print(f"mean loss of five digits: {losses[:5].mean():.3f}, padded to eight rows: {losses.mean():.3f}")

# %% [markdown]
# ## Task 1 · masked_loss
#
# *10 minutes, the heart of the lab.* The mean of `row_losses` over the **valid** rows: a scalar. Value and gradient are those
# of the valid rows alone, whatever the other rows and labels hold, and wherever they stand. Without a valid row the loss is 0
# and so is its gradient. It runs inside `jit`.
#
# Look back at [The denominator is the valid count](../course/06_padding_masks/06_padding_masks.ipynb#The-denominator-is-the-valid-count)
# and at [A mask belongs in front](../course/06_padding_masks/06_padding_masks.ipynb#A-mask-belongs-in-front).
#
# <details><summary>If the loss is right and the gradient is NaN</summary>
#
# The mask comes too late. Replace the padded rows of `x`, and their labels, *before* anything is computed with them.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "masked_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_loss(params, x, y, valid):
    """The mean loss of the valid rows; 0 where there is none."""
    ### BEGIN SOLUTION
    x = jnp.where(valid[:, None], x, 0)
    losses = row_losses(params, x, jnp.where(valid, y, 0))
    return jnp.sum(jnp.where(valid, losses, 0)) / jnp.maximum(jnp.sum(valid), 1)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_loss_and_grad", "locked": true, "schema_version": 3, "solution": false, "task": false}
loss_and_grad = jax.jit(lambda params, x, y, valid: jax.value_and_grad(masked_loss)(params, x, y, valid))

# %% nbgrader={"grade": true, "grade_id": "test_masked_loss", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
loss, grads = loss_and_grad(params, *five)
assert jnp.shape(loss) == (), f"expected one number; got shape {jnp.shape(loss)}."
expected = losses[:5].mean()
assert abs(loss - expected) < 1e-4, f"expected {expected:.3f}, as of the five rows; got {loss:.3f}."
loss, grads = loss_and_grad(params, *hostile)
assert abs(loss - expected) < 1e-4, f"expected {expected:.3f} with NaN in the padding; got {loss:.3f}."
bad = [name for name in grads if not np.isfinite(grads[name]).all()]
assert not bad, f"expected finite gradients with NaN in the padding; not finite: {bad}."
loss, _ = loss_and_grad(params, *nothing)
assert float(loss) == 0.0, f"expected 0 without a valid row; got {loss}."
print("Task 1: the visible asserts pass. Hidden ones use other fillings, orders and parameters.")

# %% [markdown]
# ## Task 2 · standardise
#
# *5 minutes.* Each pixel minus its mean, divided by its standard deviation plus 0.1: both taken over the valid rows of the
# batch. `x` has shape `(n, 64)`, and so has the result. Rows that are not valid come out as zeros.
#
# Look back at [Statistics across the batch](../course/06_padding_masks/06_padding_masks.ipynb#Statistics-across-the-batch).
#
# <details><summary>If the valid rows change with the padding</summary>
#
# A mean over all rows has the padding in it. `jnp.mean` and `jnp.std` take `where=`, a mask that broadcasts against `x`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "standardise", "locked": false, "schema_version": 3, "solution": true, "task": false}
def standardise(x, valid):
    """The valid rows with mean 0 and about unit spread in each column; zeros elsewhere."""
    ### BEGIN SOLUTION
    mask = valid[:, None]
    x = jnp.where(mask, x, 0)
    mean, spread = jnp.mean(x, axis=0, where=mask), jnp.std(x, axis=0, where=mask)
    return jnp.where(mask, (x - mean) / (spread + 0.1), 0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_standardise", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
got = np.asarray(standardise(jnp.asarray(five[0]), jnp.asarray(five[2])))
expected = (pixels[:5] - pixels[:5].mean(axis=0)) / (pixels[:5].std(axis=0) + 0.1)
assert got.shape == (8, 64), f"expected shape (8, 64); got {got.shape}."
assert np.allclose(got[:5], expected, atol=1e-4), "expected the statistics of the five valid rows alone."
assert not got[5:].any(), "expected zeros in the padded rows."
print("Task 2: the visible asserts pass. Hidden ones fill the padding with other things.")

# %% [markdown]
# ## Task 3 · An empty batch is no step
#
# *6 minutes.* SGD with momentum, from the gradient of a batch and the number of its valid rows. `state` is a dict of `params`,
# `velocity` (like `params`) and `steps`. The new velocity is `0.9 * velocity + grads`, the new parameters are
# `params - lr * new velocity`, and `steps`, an int32, is one higher. With a `count` of 0 **nothing** of the state changes,
# whatever `grads` holds. The step is compiled.
#
# Look back at [Nothing to divide by](../course/06_padding_masks/06_padding_masks.ipynb#Nothing-to-divide-by).
#
# <details><summary>If jit raises a TracerBoolConversionError</summary>
#
# A Python `if` asks a tracer. Compute the new state, and choose between new and old for each leaf: `jax.tree.map` and
# `jnp.where`, or `jax.lax.cond`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def step(state, grads, count, lr):
    """The state after one step; the same state if no row was valid."""
    ### BEGIN SOLUTION
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    new_params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    new = {"params": new_params, "velocity": velocity, "steps": state["steps"] + 1}
    return jax.tree.map(lambda after, before: jnp.where(count > 0, after, before), new, state)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_compiled_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
compiled_step = jax.jit(lambda state, grads, count, lr: step(state, grads, count, lr))

# %% nbgrader={"grade": true, "grade_id": "test_step", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
halves = {name: np.full_like(leaf, 0.5) for name, leaf in params.items()}
state = {"params": params, "velocity": halves, "steps": np.int32(3)}
zeros = {name: np.zeros_like(leaf) for name, leaf in params.items()}
after = compiled_step(state, zeros, np.int32(0), 0.1)
drift = float(np.abs(after["params"]["b"] - params["b"]).max())
assert drift == 0, f"expected no change from an empty batch; the bias moved by {drift:.3f}."
assert int(after["steps"]) == 3, f"expected steps to stay 3 on an empty batch; got {after['steps']}."
assert float(after["velocity"]["b"][0]) == 0.5, "expected the velocity to stay on an empty batch."
after = compiled_step(state, halves, np.int32(5), 0.1)
assert int(after["steps"]) == 4, f"expected steps = 4 after an ordinary batch; got {after['steps']}."
moved = float(params["w"][0, 0] - after["params"]["w"][0, 0])
assert abs(moved - 0.095) < 1e-4, f"expected w to move by 0.1 * (0.9 * 0.5 + 0.5) = 0.095; got {moved:.4f}."
print("Task 3: the visible asserts pass. Hidden ones use other states, gradients and rates.")

# %% [markdown]
# ## Task 4 · evaluate
#
# *7 minutes.* Loss and accuracy over a whole data set, in batches of `size` rows that go through a compiled function: a dict of
# `loss` and `accuracy`, the means over **all** rows. `x` and `y` are NumPy arrays of any number of rows; the last batch may be
# short, and so may the only one. After a first call, another number of rows must cost no trace and no compile.
#
# Look back at [Evaluation: sums and counts](../course/06_padding_masks/06_padding_masks.ipynb#Evaluation:-sums-and-counts).
#
# `row_results` is given, and compiled: each row's loss, and whether it is right.
#
# <details><summary>If another number of rows compiles</summary>
#
# Some JAX operation sees the short shape: a slice of a JAX array, or `jnp.pad`. Pad with NumPy, before JAX gets the batch.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "evaluate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def evaluate(params, x, y, size):
    """{"loss": mean loss, "accuracy": share of right rows} of all rows of x and y."""
    ### BEGIN SOLUTION
    loss = right = 0.0
    for start in range(0, len(x), size):
        rows, targets = x[start : start + size], y[start : start + size]
        n = len(rows)
        rows, targets = np.pad(rows, ((0, size - n), (0, 0))), np.pad(targets, (0, size - n))
        row_loss, row_right = row_results(params, rows, targets)
        loss += float(np.asarray(row_loss)[:n].sum())
        right += int(np.asarray(row_right)[:n].sum())
    return {"loss": loss / len(x), "accuracy": right / len(x)}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_evaluate", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
got = evaluate(params, pixels[:10], labels[:10], 8)
batches = (pixels[:8], labels[:8]), (pixels[2:10], labels[2:10])
first, last = (np.asarray(row_results(params, *batch)[0], "float64") for batch in batches)
expected = (first.sum() + last[6:].sum()) / 10
assert abs(float(got["loss"]) - expected) < 1e-4, f"expected loss {expected:.3f}; got {got['loss']:.3f}."
assert abs(float(got["accuracy"]) - 0.1) < 1e-6, f"expected accuracy 0.1; got {got['accuracy']:.3f}."
with watch(everything=True) as seen:
    evaluate(params, pixels[:13], labels[:13], 8)
traces = seen.total.traces
assert traces == 0, f"expected no trace for 13 rows after 10; got {traces}."
print("Task 4: the visible asserts pass. Hidden ones use other rows and parameters.")

# %% [markdown]
# ## Task 5 · The hardest digits
#
# *5 minutes.* Which digits does the model get most wrong? `hardest(losses, valid)` finds the four valid rows with the largest
# loss, largest first, in four slots: `index` (int), `loss`, and `filled` (bool: True for slots that hold a row). A slot that holds
# none has index −1, loss 0 and filled False. Losses are 0 or more. What stands in rows that are not valid is garbage, and may be
# larger than any loss.
#
# Look back at [A fixed number of slots](../course/06_padding_masks/06_padding_masks.ipynb#A-fixed-number-of-slots).


# %% nbgrader={"grade": false, "grade_id": "hardest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hardest(losses, valid):
    """The four hardest valid rows: index (4,), loss (4,), filled (4,)."""
    ### BEGIN SOLUTION
    loss, index = jax.lax.top_k(jnp.where(valid, losses, -1), 4)
    filled = loss >= 0
    return jnp.where(filled, index, -1), jnp.where(filled, loss, 0), filled
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_hardest", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
trial = jnp.array([0.5, 9.0, 0.25, 2.0, jnp.inf, jnp.nan, 1.0, 3.0])
index, loss, filled = hardest(trial, jnp.array([True, False, True, True, False, False, False, False]))
assert np.shape(index) == np.shape(loss) == np.shape(filled) == (4,), "expected three arrays of four."
index, loss, filled = (np.asarray(part).tolist() for part in (index, loss, filled))
assert index == [3, 0, 2, -1], f"expected rows 3, 0, 2 and an empty slot, [3, 0, 2, -1]; got {index}."
assert loss == [2.0, 0.5, 0.25, 0.0], f"expected [2.0, 0.5, 0.25, 0.0]; got {loss}."
assert filled == [True, True, True, False], f"expected three filled slots; got {filled}."
print("Task 5: the visible asserts pass. Hidden ones use other losses and masks.")

# %% [markdown]
# ## Task 6 · A ring
#
# *7 minutes.* The last five values that were worth keeping, as state of a fixed shape: `{"values": (5,), "count": ()}`, where
# `count` is an int of all that were ever kept. `remember(ring, values, keep)` writes those of the four `values` with `keep`
# True, in their order; the newest overwrite the oldest. `recall(ring)` is the mean of what the ring holds, and 0 for an empty
# one. Both run inside `jit`, as parts of one program.
#
# Look back at [A ring](../course/06_padding_masks/06_padding_masks.ipynb#A-ring).
#
# <details><summary>One way to write several</summary>
#
# `jax.lax.scan` over the four pairs with the ring as carry: each turn writes to slot `count % 5`, or puts back what stands
# there. Its carry keeps shapes and dtypes, which is what a ring needs.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "given_ring", "locked": true, "schema_version": 3, "solution": false, "task": false}
def empty_ring():
    return {"values": jnp.zeros(5, jnp.float32), "count": jnp.int32(0)}


# %% nbgrader={"grade": false, "grade_id": "remember", "locked": false, "schema_version": 3, "solution": true, "task": false}
def remember(ring, values, keep):
    """The ring after the values with keep True were written, in order."""

    ### BEGIN SOLUTION
    def write(ring, pair):
        value, ok = pair
        slot = ring["count"] % 5
        kept = jnp.where(ok, value, ring["values"][slot])
        return {"values": ring["values"].at[slot].set(kept), "count": ring["count"] + ok}, None

    return jax.lax.scan(write, ring, (values, keep))[0]
    ### END SOLUTION


def recall(ring):
    """The mean of the values in the ring; 0 if it is empty."""
    ### BEGIN SOLUTION
    filled = jnp.arange(5) < ring["count"]
    return jnp.sum(jnp.where(filled, ring["values"], 0)) / jnp.maximum(jnp.sum(filled), 1)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_push", "locked": true, "schema_version": 3, "solution": false, "task": false}
@jax.jit
def push(ring, values, keep):
    ring = remember(ring, values, keep)
    return ring, recall(ring)


def push_all(batches):
    """Push batches of (values, keep) into an empty ring: the means on the way, and the last ring."""
    ring, means = empty_ring(), []
    for values, keep in batches:
        ring, mean = push(ring, np.asarray(values, "float32"), np.asarray(keep, bool))
        means.append(float(mean))
    return means, ring


# %% nbgrader={"grade": true, "grade_id": "test_remember", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
pushes = [
    ([1] * 4, [False] * 4),
    ([1, 2, np.nan, 4], [True, True, False, True]),
    ([5, 6, 7, 8], [True, False, True, True]),
]
means, ring = push_all(pushes)
window, expected = deque(maxlen=5), []
for values, keep in pushes:
    window.extend(value for value, ok in zip(values, keep, strict=True) if ok)
    expected.append(sum(window) / max(len(window), 1))
assert np.allclose(means, expected, atol=1e-5), f"expected the means {expected}; got {means}."
assert int(ring["count"]) == 6, f"expected a count of 6, of all that were kept; got {ring['count']}."
print("Task 6: the visible asserts pass. Hidden ones push more, and less.")

# %% [markdown]
# ## Task 7 · Buckets
#
# *7 minutes.* Each digit, as the list of its inked pixels, has another length. `to_bucket(values)` pads a NumPy array of n numbers
# to the smallest of `BUCKETS` that holds it: the padded array and its mask, both NumPy. A number may be 0. What fits into none raises a
# `ValueError`. `bucketed_means(sequences)` is the list of their means, through **one** jitted function, with at most one
# compile for each bucket.
#
# Look back at [Few shapes for many lengths](../course/06_padding_masks/06_padding_masks.ipynb#Few-shapes-for-many-lengths).


# %% nbgrader={"grade": false, "grade_id": "given_buckets", "locked": true, "schema_version": 3, "solution": false, "task": false}
BUCKETS = (8, 16, 32)
sequences = [row[row > 0.9] for row in pixels[:40]]
sequences = [values for values in sequences if len(values) > 8]
print("lengths:", sorted(len(values) for values in sequences))


# %% nbgrader={"grade": false, "grade_id": "buckets", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_bucket(values):
    """`values`, padded to the smallest bucket, and which entries are valid."""
    ### BEGIN SOLUTION
    for size in BUCKETS:
        if len(values) <= size:
            return np.pad(values, (0, size - len(values))), np.arange(size) < len(values)
    raise ValueError(f"{len(values)} values do not fit into the largest bucket, {BUCKETS[-1]}")
    ### END SOLUTION


def bucketed_means(sequences):
    """The mean of each sequence, as a list."""
    ### BEGIN SOLUTION
    return [float(masked_mean(*to_bucket(values))) for values in sequences]


@jax.jit
def masked_mean(values, valid):
    return jnp.sum(jnp.where(valid, values, 0)) / jnp.maximum(jnp.sum(valid), 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_buckets", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
padded, valid = to_bucket(np.ones(9, "float32"))
assert len(padded) == len(valid) == 16, f"expected 9 values in the bucket of 16; got {len(padded)}."
assert valid.tolist() == [True] * 9 + [False] * 7, f"expected nine valid entries; got {valid}."
expected = [float(values.mean()) for values in sequences]
with watch() as seen:
    got = bucketed_means(sequences)
assert np.allclose(got, expected, atol=1e-5), "expected the mean of each sequence alone."
compiles = seen.total.compiles
assert compiles <= 1, f"expected one compile, all being in the bucket of 16; got {compiles}."
print("Task 7: the visible asserts pass. Hidden ones use other lengths, and one that is too long.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - Loss, gradient, statistics and metrics against the same formulas in float64, on the valid rows alone.
# - Amount, content and order of the padding; batches without a valid row.
# - That the whole state stays on an empty batch, and moves on any other.
# - That data of other lengths compile nothing, and that a bucket is neither too small nor too large.
# - Slots and rings that are empty, half full, full, and wrapped around.

# %% [markdown]
# ## Going further
#
# - Train with `train_step` on batches of 64 for a few epochs. Does the loss of an epoch depend on the batch size?
# - Write an attention over inked pixels whose padded queries give 0, and whose gradient is finite. Vary the padding.
# - Give each device a share of a batch with another number of valid rows. What must be added up, and what divided?
