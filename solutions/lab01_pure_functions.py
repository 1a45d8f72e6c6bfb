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
#     lab: lab01_pure_functions
# ---

# %% [markdown]
# # Lab 01 · One step is a state transition
#
# ## Situation
#
# A training step was ported from PyTorch in an afternoon. It runs, it compiles, and nothing warns. But the loss at step
# 80 is the loss at step 1, the learning-rate schedule has no effect, and the list of metrics has one entry. People have
# reported each of these from their own work: [an update that updates nothing](https://github.com/jax-ml/jax/issues/2287),
# [a value that stays what it was](https://github.com/jax-ml/jax/issues/1426),
# [a tracer in a list](https://github.com/jax-ml/jax/issues/3086).
#
# You build the pieces for the four rows of the lesson, where every number can be checked by hand. Then you repair the
# step. About 30 minutes.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones on random data.

# %% nbgrader={"grade": false, "grade_id": "given_data", "locked": true, "schema_version": 3, "solution": false, "task": false}
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])
zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}
exact = {"w": jnp.array([2.0, -1.0]), "b": jnp.zeros(())}

# %% [markdown]
# ## Task 1 · predict_one
#
# *3 minutes, easy.* The prediction `w·row + b` for **one** row. `params` is a dict with `"w"`, shape `(d,)`, and `"b"`,
# shape `()`; `row` has shape `(d,)`. The result is one number: an array of shape `()`.
#
# Look back at [The step returns the whole change](../course/01_pure_functions/01_pure_functions.ipynb#The-step-returns-the-whole-change).
#
# <details><summary>If your result has shape (d,)</summary>
#
# `w * row` multiplies and does not add up. `jnp.dot` or `@` does both.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "predict_one", "locked": false, "schema_version": 3, "solution": true, "task": false}
def predict_one(params, row):
    """The prediction for one row: a scalar."""
    ### BEGIN SOLUTION
    return jnp.dot(params["w"], row) + params["b"]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_predict_one", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
got = predict_one({"w": jnp.array([1.0, 2.0]), "b": jnp.array(3.0)}, jnp.array([10.0, 100.0]))
assert jnp.shape(got) == (), f"expected one number; got shape {jnp.shape(got)}. Add up the features."
assert float(got) == 213.0, f"expected 1*10 + 2*100 + 3 = 213; got {float(got)}. Is the bias in it?"
print("Task 1: the visible asserts pass. Hidden ones use other sizes.")

# %% [markdown]
# ## Task 2 · mse
#
# *4 minutes, easy.* The mean squared error over all rows of `x`, shape `(n, d)`, against `y`, shape `(n,)`: a scalar for
# any `n` and `d`.
#
# Look back at [The step returns the whole change](../course/01_pure_functions/01_pure_functions.ipynb#The-step-returns-the-whole-change).
#
# `jax.vmap(predict_one, in_axes=(None, 0))` is `predict_one` for a whole `x`: the same `params` (`None`) with each row
# (axis `0`). Lesson 04 is about it. A matrix product will do as well.
#
# <details><summary>If it works for four rows and not for others</summary>
#
# Look at the axis over which you add. Adding over the features of each row is one sum (axis 1 of `x`), the mean over the
# rows is another (axis 0). With as many rows as features, a mix-up raises no error.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "mse", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mse(params, x, y):
    """The mean squared error over all rows: a scalar."""
    ### BEGIN SOLUTION
    predictions = jax.vmap(predict_one, in_axes=(None, 0))(params, x)
    return jnp.mean((predictions - y) ** 2)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_mse", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
for params, expected in ((zero, 3.75), (exact, 0.0)):
    got = mse(params, x, y)
    assert jnp.shape(got) == (), f"expected one number; got shape {jnp.shape(got)}. Take the mean."
    assert float(got) == expected, f"expected {expected}; got {float(got)}. (4 + 1 + 1 + 9) / 4 = 3.75."
got = float(mse(zero, x[:1], y[:1]))
assert got == 4.0, f"expected 2² / 1 = 4 on the first row alone; got {got}. How many rows are there?"
print("Task 2: the visible asserts pass. Hidden ones use other sizes and data.")

# %% [markdown]
# ## Task 3 · sgd_step
#
# *6 minutes, the heart of the lab.* One step of gradient descent on `mse`. It returns a pair: the new parameters, with
# the same keys, and `{"loss": loss}`, where `loss` is the value **before** the update. It changes nothing that it was
# given, and it can be compiled.
#
# Look back at [The step returns the whole change](../course/01_pure_functions/01_pure_functions.ipynb#The-step-returns-the-whole-change)
# and at [A compiled step remembers what it read](../course/01_pure_functions/01_pure_functions.ipynb#A-compiled-step-remembers-what-it-read).
#
# `jax.value_and_grad(mse)(params, x, y)` gives the loss and its gradient with respect to `params`.
#
# <details><summary>If jax.jit(sgd_step) raises a ConcretizationTypeError</summary>
#
# Somewhere a tracer is turned into a Python number: `float(loss)`, `loss.item()`, or an `if` on a value. Return the array
# and let the caller convert it.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "sgd_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sgd_step(params, x, y, lr):
    """One step of gradient descent: (new parameters, {"loss": the loss before the step})."""
    ### BEGIN SOLUTION
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    new_params = jax.tree.map(lambda p, g: p - lr * g, params, grads)
    return new_params, {"loss": loss}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_sgd_step", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
before = {"w": jnp.zeros(2), "b": jnp.zeros(())}
after, metrics = sgd_step(before, x, y, 0.05)
w, b = np.asarray(after["w"], "float64").round(4), round(float(after["b"]), 4)
loss, kept = float(metrics["loss"]), np.asarray(before["w"])
assert np.allclose(w, [0.225, 0.075]), f"expected w = [0.225, 0.075]; got {w}: w - lr * gradient."
assert b == 0.125, f"expected b = 0.125; got {b}. The bias is a parameter too."
assert loss == 3.75, f"expected 3.75, the loss before the step; got {loss}."
assert not kept.any(), f"expected the argument to stay [0, 0]; it is {kept} now. Build a new dict."
print("Task 3: the visible asserts pass. Hidden ones use other parameters and rates, and jax.jit.")

# %% [markdown]
# ## Task 4 · checked_set
#
# *6 minutes.* `checked_set(array, index, value)` returns a new array with `value` at `array[index]`, along the first axis.
# `index` is a Python int and follows the rules of a Python list: for `n` elements, `-n` to `n - 1` are valid, and a
# negative index counts from the end. Any other index raises an `IndexError`; JAX alone would say nothing.
#
# Look back at [Arrays refuse to be changed](../course/01_pure_functions/01_pure_functions.ipynb#Arrays-refuse-to-be-changed).
#
# <details><summary>If an index outside is accepted</summary>
#
# JAX drops such a write, so there is no error to catch: compare the index yourself, before you use it. `len(array)` is
# the length of the first axis; `array.size` counts all elements.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "checked_set", "locked": false, "schema_version": 3, "solution": true, "task": false}
def checked_set(array, index, value):
    """A copy of `array` with `value` at `index`; raises IndexError where a list would."""
    ### BEGIN SOLUTION
    n = len(array)
    if not -n <= index < n:
        raise IndexError(f"index {index} is outside an array of length {n}")
    return array.at[index].set(value)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_checked_set", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
v = jnp.array([10, 20, 30])
got = checked_set(v, 1, 99).tolist()
assert got == [10, 99, 30], f"expected [10, 99, 30]; got {got}. Is the new array returned?"
assert v.tolist() == [10, 20, 30], f"expected v to stay [10, 20, 30]; it is {v.tolist()}."
try:
    got = checked_set(v, 9, 99).tolist()
except IndexError as error:
    print("index 9:", error)
else:
    raise AssertionError(f"expected an IndexError for index 9 of 3; got {got}. Check, then set.")
print("Task 4: the visible asserts pass. Hidden ones try both ends, negative indices and two axes.")

# %% [markdown]
# ## Task 5 · Repair the step
#
# *10 minutes.* Here is the port. Its loss is less sensitive to outliers than `mse`, and its state is nested: parameters,
# and a count of steps. Read it and take its inventory before you run it: what changes, and what comes back?
#
# Look back at [A compiled step remembers what it read](../course/01_pure_functions/01_pure_functions.ipynb#A-compiled-step-remembers-what-it-read)
# and at [Python runs while tracing, and then no more](../course/01_pure_functions/01_pure_functions.ipynb#Python-runs-while-tracing,-and-then-no-more).


# %% nbgrader={"grade": false, "grade_id": "given_broken_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
LR = 0.05
HISTORY = []


def robust_loss(params, x, y):
    errors = x @ params["w"] + params["b"] - y
    return jnp.mean(jnp.sqrt(1 + errors**2) - 1)


@jax.jit
def broken_step(state, x, y):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    HISTORY.append(loss)
    for name in state["params"]:
        state["params"][name].at[...].add(-LR * grads[name])
    state["steps"] += 1
    return state


# %% nbgrader={"grade": false, "grade_id": "given_symptom", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["for-show"]
state = {"params": zero, "steps": jnp.int32(0)}
for step in range(80):
    state = broken_step(state, x, y)
    if step in (0, 79):
        loss = robust_loss(state["params"], x, y)
        print(f"steps: {state['steps']}, loss: {loss:.4f}, metrics kept: {len(HISTORY)}")

# %% [markdown]
# Write `repaired_step(state, x, y, lr)`. It returns a pair: the new state (same structure, parameters moved by gradient
# descent on `robust_loss`, `steps` one higher) and `{"loss": loss}`, the loss before the step. The learning rate is the
# argument. It reads and writes no global and leaves `state` as it was, at every level.
#
# <details><summary>If your step changes the state that it was given</summary>
#
# `dict(state)` and `{**state}` copy the outer dict. `state["params"]` is the same inner dict in both: writing into it
# changes the caller's. Build a new inner dict too.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "repaired_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def repaired_step(state, x, y, lr):
    """One step: (new state, {"loss": the loss before the step})."""
    ### BEGIN SOLUTION
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new_params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {"params": new_params, "steps": state["steps"] + 1}, {"loss": loss}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_repaired_step", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
start = {"params": {"w": jnp.zeros(2), "b": jnp.zeros(())}, "steps": jnp.int32(0)}
once, metrics = repaired_step(start, x, y, 0.1)
w, kept = np.asarray(once["params"]["w"]), np.asarray(start["params"]["w"])
loss = float(metrics["loss"])
assert w[0] > 0.05, f"expected w[0] to move by 0.087; w is {w}. Is the new leaf in the new tree?"
assert int(once["steps"]) == 1, f"expected steps = 1; got {once['steps']}. Return the new count."
assert abs(loss - 1.0567) < 1e-4, f"expected 1.0567, the loss before the step; got {loss:.4f}."
assert not kept.any(), f"expected the state to stay [0, 0]; it is {kept} now. Build a new inner dict."

state, fast = start, jax.jit(repaired_step)
for _ in range(400):
    state, metrics = fast(state, x, y, 0.1)
loss = float(metrics["loss"])
assert loss < 0.01, f"expected a loss under 0.01 after 400 steps; got {loss:.4f}."
print("Task 5: the visible asserts pass. Hidden ones use other states, rates and globals, and jax.jit.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - Values on random data of several sizes, against the same formula in float64.
# - Parameters after one step, from a random start; that twice the rate moves twice as far.
# - That arguments are the same after the call, at every level.
# - That no global is read for the rate and none is written for the metrics.
# - That the functions can be compiled, with one trace for several calls.
# - Indices just inside and just outside, at both ends.

# %% [markdown]
# ## Going further
#
# - Add momentum to `repaired_step`. Where does the velocity live, and what is its structure?
# - Write `checked_set` for an index that is a tracer. You cannot raise; what would you return? (`checkify` is one answer.)
# - Take the inventory of a step in a project of yours. Is there a piece of state that does not come back?
