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
#     lab: lab04_transformations
# ---

# %% [markdown]
# # Lab 04 · Derive, do not rewrite
#
# ## Situation
#
# A few labels are wrong, and each of them pulls harder than all good rows together. Clipping the gradient did not help. Clipping
# *each example's* gradient did, until a batch of 4096 ran out of memory, and until a row that was fitted exactly made everything
# NaN. People have reported each of these: [memory for every sample's gradient](https://github.com/meta-pytorch/opacus/issues/25),
# [0 / 0 in the clipping](https://github.com/google-deepmind/optax/pull/1752),
# [a penalty with a NaN gradient](https://github.com/jax-ml/jax/issues/21723).
#
# You derive the pieces from the loss of one row, first on four rows, then on real digits. About 40 minutes.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones, on random data, and asks the compiler how large your programs are.

# %% nbgrader={"grade": false, "grade_id": "given_data", "locked": true, "schema_version": 3, "solution": false, "task": false}
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import plan
from traceonce.data import digits

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = np.array([[1, 0], [0, 1], [1, 1], [2, 1]], "float32")
y = np.array([2, -1, 1, 3], "float32")
zero = {"w": np.zeros(2, "float32"), "b": np.float32(0)}


def row_loss(params, row, target):
    """The squared error of one row: row (d,), target ()."""
    return (row @ params["w"] + params["b"] - target) ** 2


# %% [markdown]
# ## Task 1 · gradients
#
# *4 minutes, easy.* The gradient of `row_loss` with respect to `params`, for each row of `x`, shape `(n, d)`, and its target in
# `y`, shape `(n,)`: a dict like `params` whose leaves have a leading axis of `n`.
#
# Look back at [Which axis is the batch](../course/04_transformations/04_transformations.ipynb#Which-axis-is-the-batch).
#
# <details><summary>If your numbers are wrong for as many rows as features</summary>
#
# `in_axes` has an entry for each argument. `params` are shared, and rows lie along axis 0 of `x`. With a square `x`, axis 1 raises
# no error.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "gradients", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gradients(params, x, y):
    """Each row's gradient: {"w": (n, d), "b": (n,)}."""
    ### BEGIN SOLUTION
    return jax.vmap(jax.grad(row_loss), in_axes=(None, 0, 0))(params, x, y)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_gradients", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
got = gradients(zero, x, y)
w, b = np.asarray(got["w"]), np.asarray(got["b"])
assert w.shape == (4, 2), f"expected w of shape (4, 2), a gradient for each row; got {w.shape}."
assert w[:, 0].tolist() == [-4, 0, -2, -12], f"expected first weights [-4, 0, -2, -12]; got {w[:, 0]}."
assert b.tolist() == [-4, 2, -2, -6], f"expected [-4, 2, -2, -6] for the bias; got {b}."
print("Task 1: the visible asserts pass. Hidden ones use other rows, and a square x.")

# %% [markdown]
# ## Task 2 · clip
#
# *5 minutes.* `clip(tree, limit)` makes a tree of arrays shorter where its **norm** is over the limit: the square root of the sum
# of all squares, over all leaves together. Its direction stays. A tree whose norm is at or under the limit comes back as it is, and
# a tree of zeros stays zero. `tree` may be any tree, and `limit` is above 0.
#
# Look back at [The row that pulls nothing](../course/04_transformations/04_transformations.ipynb#The-row-that-pulls-nothing).
#
# <details><summary>If zeros become NaN</summary>
#
# Dividing by the norm is 0 / 0 there. Multiply by a factor that is never above 1 instead, and look at what the factor is for a norm
# of 0.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "clip", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clip(tree, limit):
    """The tree with a norm of at most `limit`, in the same direction."""
    ### BEGIN SOLUTION
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf / jnp.maximum(1.0, norm / limit), tree)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_clip", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
got = clip({"w": jnp.array([2.0, 4.0]), "b": jnp.array(4.0)}, 3.0)
both = [*np.asarray(got["w"]).tolist(), float(got["b"])]
assert np.allclose(both, [1, 2, 2]), f"expected w = [1, 2] and b = 2: half, since the norm is 6; got {both}."
w = np.asarray(clip({"w": jnp.array([0.3, 0.4])}, 3.0)["w"])
assert np.allclose(w, [0.3, 0.4]), f"expected what is short to stay [0.3, 0.4]; got {w}."
w = np.asarray(clip({"w": jnp.zeros(2)}, 3.0)["w"])
assert w.tolist() == [0, 0], f"expected zeros to stay zeros; got {w}."
print("Task 2: the visible asserts pass. Hidden ones use other trees and limits.")

# %% [markdown]
# ## Task 3 · clipped_gradient
#
# *6 minutes, the heart of the lab.* Clip the gradient of **each row** to `limit`, then take the mean over the rows: a dict like
# `params`. With a limit that nothing reaches it is the gradient of the mean loss. Your program must not grow with the number of
# rows.
#
# Look back at [The order decides what exists](../course/04_transformations/04_transformations.ipynb#The-order-decides-what-exists)
# and at [One more composition](../course/04_transformations/04_transformations.ipynb#One-more-composition).
#
# <details><summary>If one wild row still decides the direction</summary>
#
# You have clipped a mean. A mean that one row dominates has that row's direction, however short you make it. Clip first.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "clipped_gradient", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clipped_gradient(params, x, y, limit):
    """The mean over the rows of their clipped gradients."""
    ### BEGIN SOLUTION
    each = jax.vmap(clip, in_axes=(0, None))(gradients(params, x, y), limit)
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), each)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_clipped_gradient", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
free = clipped_gradient(zero, x, y, 1000.0)
w = np.asarray(free["w"])
assert np.allclose(w, [-4.5, -1.5]), f"expected the plain mean [-4.5, -1.5] with a limit of 1000; got {w}."
y_typo = np.array([2, -1, 1, 300], "float32")
honest, typo = (np.asarray(clipped_gradient(zero, x, targets, 2.0)["w"]) for targets in (y, y_typo))
shown = f"{honest.round(3)} and {typo.round(3)}"
assert np.allclose(honest, typo, atol=1e-4), f"expected a typing error in a clipped row to change nothing; got {shown}."
assert np.isclose(honest[0], -1.0502, atol=1e-3), f"expected w[0] = -1.0502 at a limit of 2; got {honest[0]:.4f}."
print("Task 3: the visible asserts pass. Hidden ones use other limits, and count operations.")

# %% [markdown]
# ## Task 4 · clipped_digits
#
# *10 minutes.* The same for digits, with `digit_loss`: the mean of each digit's clipped gradient. `images` has shape `(n, 64)` and
# `labels` shape `(n,)`; `n` is any multiple of 64. A gradient has 2600 bytes, and 1024 of them are 2.7 MB. Your program may plan
# **400 kB of temporaries for 1024 digits**, and must not grow with `n`: no Python loop, neither over digits nor over pieces.
#
# Look back at [A sum needs no list](../course/04_transformations/04_transformations.ipynb#A-sum-needs-no-list).
#
# <details><summary>If lax.map in pieces still plans too much</summary>
#
# It stacks its results: all gradients, waiting for their mean. You want a sum. `jax.lax.scan` over pieces of 64 digits can carry it:
# each turn adds the clipped gradients of its piece.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "given_digits", "locked": true, "schema_version": 3, "solution": false, "task": false}
pixels, digit_labels = digits()
blank = {"w": np.zeros((64, 10), "float32"), "b": np.zeros(10, "float32")}


def digit_loss(params, image, label):
    """The squared distance of ten scores to the digit's one-hot: image (64,), label ()."""
    return jnp.sum((image @ params["w"] + params["b"] - jax.nn.one_hot(label, 10)) ** 2)


# %% nbgrader={"grade": false, "grade_id": "clipped_digits", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clipped_digits(params, images, labels, limit):
    """The mean over the digits of their clipped gradients, a piece at a time."""

    ### BEGIN SOLUTION
    def one(image, label):
        return clip(jax.grad(digit_loss)(params, image, label), limit)

    def add_piece(total, piece):
        each = jax.vmap(one)(*piece)
        return jax.tree.map(lambda t, g: t + g.sum(axis=0), total, each), None

    pieces = images.reshape(-1, 64, 64), labels.reshape(-1, 64)
    total, _ = jax.lax.scan(add_piece, jax.tree.map(jnp.zeros_like, params), pieces)
    return jax.tree.map(lambda leaf: leaf / len(images), total)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_clipped_digits", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
batch = pixels[:1024], digit_labels[:1024]
got = jax.jit(clipped_digits)(blank, *batch, 1.0)
bias = np.asarray(got["b"])
delta = -2 * np.eye(10)[batch[1]]  # gradients of the scores at zero parameters
norms = np.sqrt((delta**2).sum(1) * ((batch[0] ** 2).sum(1) + 1))
expected = (delta / np.maximum(1, norms)[:, None]).mean(0)
assert np.allclose(bias, expected, atol=1e-5), f"expected b = {expected.round(4)}; got {bias.round(4)}."
planned = plan(clipped_digits, blank, *batch, 1.0).temporaries
assert planned <= 400_000, f"expected at most 400,000 bytes of temporaries; the compiler plans {planned:,}."
print(f"Task 4: the visible asserts pass, with {planned:,} bytes. Hidden ones count operations.")

# %% [markdown]
# What it is for. Eight of 1024 images were not scaled, so that their pixels are a thousand times too large, and their labels are
# wrong. A hundred steps, without a limit and with one:

# %% nbgrader={"grade": true, "grade_id": "test_on_digits", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
images, wrong = pixels[:1024].copy(), digit_labels[:1024].copy()
images[:8] *= 1000
wrong[:8] = (wrong[:8] + 1) % 10
one_step = jax.jit(lambda p, limit: jax.tree.map(lambda a, g: a - g / 2, p, clipped_digits(p, images, wrong, limit)))
accuracy = {}
for limit in (1e9, 1.0):
    params = blank
    for _ in range(100):
        params = one_step(params, limit)
    scores = pixels[1024:] @ np.asarray(params["w"]) + np.asarray(params["b"])
    accuracy[limit] = float((scores.argmax(1) == digit_labels[1024:]).mean())
print("over 0.7 of the other digits right:", {limit: share > 0.7 for limit, share in accuracy.items()})
assert accuracy[1.0] > 0.7, f"expected over 0.7 with each gradient clipped to 1; got {accuracy[1.0]:.2f}."

# %% [markdown]
# ## Task 5 · penalty
#
# *5 minutes.* `strength` times the sum of all squared weights: a scalar. `params` is a nest of dicts of any depth. Every leaf under
# the name `"b"` is a bias and is left out; every other leaf counts. Value and gradient are right everywhere, also at zero.
#
# Look back at [A new term, rung by rung](../course/04_transformations/04_transformations.ipynb#A-new-term,-rung-by-rung).
#
# <details><summary>How to know a leaf's name</summary>
#
# `jax.tree.leaves_with_path(params)` gives pairs of path and leaf; `path[-1].key` is the name under which a dict holds it.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "penalty", "locked": false, "schema_version": 3, "solution": true, "task": false}
def penalty(params, strength):
    """strength * sum of squares of all leaves that are not named "b"."""
    ### BEGIN SOLUTION
    pairs = jax.tree.leaves_with_path(params)
    return strength * sum(jnp.sum(leaf**2) for path, leaf in pairs if path[-1].key != "b")
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_penalty_gradient", "locked": true, "schema_version": 3, "solution": false, "task": false}
def penalty_gradient(params, strength):
    return jax.grad(penalty)(params, strength)


# %% nbgrader={"grade": true, "grade_id": "test_penalty", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
exact = {"w": jnp.array([2.0, -1.0]), "b": jnp.array(3.0)}
got = float(penalty(exact, 0.1))
assert np.isclose(got, 0.5), f"expected 0.1 * (4 + 1) = 0.5, without the bias; got {got:.3f}."
w = np.asarray(penalty_gradient(exact, 0.1)["w"])
assert np.allclose(w, [0.4, -0.2]), f"expected the gradient [0.4, -0.2]; got {w}."
w = np.asarray(penalty_gradient({"w": jnp.zeros(2), "b": jnp.zeros(())}, 0.1)["w"])
assert w.tolist() == [0, 0], f"expected the gradient [0, 0] at zero; got {w}."
print("Task 5: the visible asserts pass. Hidden ones use nested layers and other strengths.")

# %% [markdown]
# ## Task 6 · A rung of the ladder
#
# *7 minutes.* `gradient_agrees(function, params)` compares the gradient of `function` at `params` with central differences of its
# value, for **every entry of every leaf**: True if each pair is closer than 0.02, otherwise False. The functions are float32, with
# values up to about 100, and smooth on a scale of 1. A gradient that is NaN agrees with nothing.
#
# Look back at [A new term, rung by rung](../course/04_transformations/04_transformations.ipynb#A-new-term,-rung-by-rung).
#
# <details><summary>If an honest function is refused</summary>
#
# In float32, 100 has steps of 8e-6. A difference of two such numbers, divided by a tiny `2 * h`, is noise. Take `h = 0.01`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "given_suspect", "locked": true, "schema_version": 3, "solution": false, "task": false}
FLAW = {"w": 0.0, "b": 0.0}  # hidden asserts put other numbers here


def suspect(params):
    """Smooth; its gradient is off by FLAW, and its value is not."""
    value = 100 + jnp.sum(jnp.sin(params["w"])) + 0.5 * params["b"] ** 2
    for name, flaw in FLAW.items():
        value += jnp.sum(jnp.asarray(flaw) * (params[name] - jax.lax.stop_gradient(params[name])))
    return value


def distance(params):
    """Its gradient is NaN where w is zero."""
    return jnp.sqrt(jnp.sum(params["w"] ** 2)) + params["b"]


# %% nbgrader={"grade": false, "grade_id": "gradient_agrees", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gradient_agrees(function, params):
    """Whether the gradient of `function` agrees with its differences, entry by entry."""
    ### BEGIN SOLUTION
    h = 0.01
    leaves, tree = jax.tree.flatten(jax.tree.map(np.asarray, params))
    grads = jax.tree.leaves(jax.grad(function)(params))
    for number, grad in enumerate(grads):
        for place in np.ndindex(leaves[number].shape):
            around = []
            for by in (h, -h):
                moved = [leaf.copy() for leaf in leaves]
                moved[number][place] += by
                around.append(float(function(jax.tree.unflatten(tree, moved))))
            difference = (around[0] - around[1]) / (2 * h)
            if not abs(float(grad[place]) - difference) < 0.02:
                return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_gradient_agrees", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
point = {"w": jnp.array([0.5, -1.0]), "b": jnp.array(2.0)}
got = gradient_agrees(suspect, point)
assert bool(got) is True, f"expected True for a gradient that is right; got {got}."
FLAW["b"] = 0.3
got = gradient_agrees(suspect, point)
FLAW["b"] = 0.0
assert bool(got) is False, f"expected False where the gradient of b is off by 0.3; got {got}."
print("Task 6: the visible asserts pass. Hidden ones put the flaw elsewhere.")

# %% [markdown]
# ## Task 7 · train_step
#
# *5 minutes.* One step for the four rows: `params - lr * (clipped_gradient + gradient of the penalty)`. The penalty is not clipped. It
# returns the new parameters and `{"loss": ..., "clipped": ...}`: the mean of `row_loss` plus the penalty, **before** the step, and the
# share of rows whose gradient is longer than `limit`. It runs inside `jit`, with one trace for any rate, limit and strength.
#
# Look back at [A step, and what it threads](../course/04_transformations/04_transformations.ipynb#A-step,-and-what-it-threads).


# %% nbgrader={"grade": false, "grade_id": "train_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_step(params, x, y, lr, limit, strength):
    """(new parameters, {"loss": before the step, "clipped": share of rows over the limit})."""
    ### BEGIN SOLUTION
    losses, each = jax.vmap(jax.value_and_grad(row_loss), in_axes=(None, 0, 0))(params, x, y)
    norms = jnp.sqrt(each["b"] ** 2 + jnp.sum(each["w"] ** 2, axis=1))
    cost, pull = jax.value_and_grad(penalty)(params, strength)
    clipped = clipped_gradient(params, x, y, limit)
    new_params = jax.tree.map(lambda p, g, d: p - lr * (g + d), params, clipped, pull)
    return new_params, {"loss": jnp.mean(losses) + cost, "clipped": jnp.mean(norms > limit)}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_train_step", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
fast = jax.jit(train_step)
params, metrics = fast(zero, x, y, 0.05, 1000.0, 0.1)
loss, share = float(metrics["loss"]), float(fast(zero, x, y, 0.05, 5.0, 0.1)[1]["clipped"])
assert loss == 3.75, f"expected 3.75, the loss before the step; got {loss:.4f}."
assert share == 0.5, f"expected 0.5: two of four gradients are longer than 5; got {share}."
for _ in range(79):
    params, metrics = fast(params, x, y, 0.05, 1000.0, 0.1)
loss = float(fast(params, x, y, 0.05, 1000.0, 0.1)[1]["loss"])
assert abs(loss - 0.399595) < 1e-5, f"expected an objective of 0.399595 after 80 steps; got {loss:.6f}."
print("Task 7: the visible asserts pass. Hidden ones use other parameters, rates and limits.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - Values against the same formulas in float64: gradients, clipped means, penalties, steps.
# - Trees of other shapes and depths; a tree of zeros; a square `x`.
# - How many operations your programs have, for few rows and for many.
# - How many bytes of temporaries the compiler plans for them.
# - That your rung notices a wrong gradient, wherever it is wrong, and lets a right one pass.
#
# Later tasks use earlier ones. If several fail, mend the first one first.

# %% [markdown]
# ## Going further
#
# - Compute the norms of the digits' gradients from `image` and the gradient of the scores alone, without any gradient of `w`. What does
#   the plan say of clipping by these norms?
# - Add noise to the clipped *sum*, with a key for each leaf, and divide last. Why in this order?
# - Which digits are clipped most often? Look at ten of them.
