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
#     lab: lab02_random_keys
# ---

# %% [markdown]
# # Lab 02 · Randomness is data with an owner
#
# ## Situation
#
# A training step adds noise to its inputs and drops some of them. The loss goes down, so nobody looked. Then three things
# turned up: the mask is [the same at each step](https://github.com/patrick-kidger/equinox/issues/498), the noise and the
# mask [are one draw](https://github.com/jax-ml/jax/pull/3646), and a restarted run
# [repeats its noise](https://github.com/AI-Hypercomputer/maxtext/issues/276).
#
# You give each key an owner: a key for each step, a pair of keys for each example, and a checkpoint that goes on exactly.
# About 30 minutes.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones on random data. They look at the **keys** that your functions return.

# %% nbgrader={"grade": false, "grade_id": "given_data", "locked": true, "schema_version": 3, "solution": false, "task": false}
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])
zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}


def mse(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def words(key):
    """The data of one key, as text."""
    return " ".join(f"{word:08x}" for word in jax.random.key_data(key).tolist())


# %% [markdown]
# This is the step's randomness as it was: one key, and everybody draws from it. Call it twice in a cell of your own. The
# mask is the same each time, and what it drops is exactly where the noise is largest.

# %% nbgrader={"grade": false, "grade_id": "given_broken", "locked": true, "schema_version": 3, "solution": false, "task": false}
KEY = jax.random.key(0, impl="threefry2x32")


def broken_corrupt(x):
    noise = jax.random.normal(KEY, x.shape)
    mask = jax.random.bernoulli(KEY, 0.75, x.shape)
    return jnp.where(mask, (x + 0.1 * noise) / 0.75, 0.0), noise, mask


# %% [markdown]
# ## Task 1 · all_distinct
#
# *4 minutes, easy.* First the measuring instrument. `keys` is an array of typed keys of any implementation, shape `(n,)`.
# Return True if no two of them are the same key, otherwise False.
#
# Look back at [Equal draws prove nothing](../course/02_random_keys/02_random_keys.ipynb#Equal-draws-prove-nothing)
# and at [What a checker sees](../course/02_random_keys/02_random_keys.ipynb#What-a-checker-sees).
#
# <details><summary>If it says False for good keys</summary>
#
# Do not compare what is drawn from the keys: two good keys may draw the same small mask. Compare all of
# `jax.random.key_data(keys)`: one row for each key.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "all_distinct", "locked": false, "schema_version": 3, "solution": true, "task": false}
def all_distinct(keys):
    """Whether no key stands twice in an array of keys."""
    ### BEGIN SOLUTION
    rows = np.asarray(jax.random.key_data(keys))
    return len(np.unique(rows, axis=0)) == len(rows)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_all_distinct", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
four = jax.random.split(jax.random.key(7, impl="threefry2x32"), 4)
got = all_distinct(four)
assert bool(got) is True, f"expected True for four children of one key; got {got}."
got = all_distinct(four[jnp.array([0, 1, 2, 0])])
assert bool(got) is False, f"expected False: the first key comes again at the end; got {got}."
print("Task 1: the visible asserts pass. Hidden ones use other keys.")

# %% [markdown]
# ## Task 2 · take_key
#
# *5 minutes, the heart of the lab.* The state of a run is `{"params": ..., "key": ..., "step": ...}`. `take_key(state)`
# returns a pair: the state that goes on, with `step` one higher, and a key for this step alone.
#
# Look back at [One parent, one owner](../course/02_random_keys/02_random_keys.ipynb#One-parent,-one-owner).
#
# Whoever gets the key will split it and fold into it. So it is in no state, and no other step gets it. Carry a new key by
# `split`, or keep one and use `fold_in`: both are right.
#
# <details><summary>If a step's key is also in a state</summary>
#
# The key in the state is a parent, from which the step's key is made. A parent that is handed out has two consumers: you
# and the step.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "take_key", "locked": false, "schema_version": 3, "solution": true, "task": false}
def take_key(state):
    """(the state that goes on, the key of this step)."""
    ### BEGIN SOLUTION
    key, step_key = jax.random.split(state["key"])
    return {**state, "key": key, "step": state["step"] + 1}, step_key
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_take_key", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
start = {"params": zero, "key": jax.random.key(7, impl="threefry2x32"), "step": jnp.int32(0)}
once, first = take_key(start)
twice, second = take_key(once)
assert int(twice["step"]) == 2, f"expected step = 2 after two steps; got {twice['step']}."
assert words(first) != words(second), f"expected two keys; both steps got {words(first)}."
kept = {words(state["key"]) for state in (start, once, twice)}
given = {words(first), words(second)}
assert not kept & given, f"expected no key both in a state and given to a step; got {kept & given}."
print("Task 2: the visible asserts pass. Hidden ones take more steps from other states.")

# %% [markdown]
# ## Task 3 · example_keys
#
# *7 minutes.* Each process reads one shard of the data; an example is known by its shard and row there.
# `example_keys(key, shard, rows)` gets the step's key, the number of the shard (below 1000) and the row numbers (below a
# million), shape `(n,)`. It returns `{"noise": keys, "mask": keys}`, each with one key for each row.
#
# Look back at [Several processes](../course/02_random_keys/02_random_keys.ipynb#Several-processes).
#
# Keys differ between rows, shards, steps and uses. An example's keys do not depend on its place in the batch or the
# batch's size.
#
# <details><summary>If two examples get one key</summary>
#
# Look at the number that you fold in: `shard + row` is 1 for shard 0, row 1 and for shard 1, row 0. Fold twice.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "example_keys", "locked": false, "schema_version": 3, "solution": true, "task": false}
def example_keys(key, shard, rows):
    """For each row of a shard a key for its noise and one for its mask."""
    ### BEGIN SOLUTION
    shard_key = jax.random.fold_in(key, shard)
    row_keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(shard_key, rows)
    pairs = jax.vmap(jax.random.split)(row_keys)
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_example_keys", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
step_key, rows = jax.random.key(11, impl="threefry2x32"), jnp.arange(4)
made = example_keys(step_key, 0, rows)
every = [words(key) for use in ("noise", "mask") for key in made[use]]
assert len(set(every)) == 8, f"expected 8 keys for 4 rows and 2 uses; got {len(set(every))}."
turned = example_keys(step_key, 0, rows[::-1])
moved = [words(key) for key in turned["noise"]][::-1]
assert moved == every[:4], "expected each row to keep its key when the batch is turned around."
print("Task 3: the visible asserts pass. Hidden ones try other shards, orders and sizes.")

# %% [markdown]
# ## Task 4 · corrupt
#
# *5 minutes.* `corrupt(keys, x)` gets the keys of task 3 and the examples, shape `(n, d)`. For each example it draws standard
# normal noise from the example's noise key, and a mask from its mask key that keeps an entry with probability 0.75. It
# returns a dict of three arrays of shape `(n, d)`:
#
# Look back at [A key is a value](../course/02_random_keys/02_random_keys.ipynb#A-key-is-a-value)
# and at [An identity, not a position](../course/02_random_keys/02_random_keys.ipynb#An-identity,-not-a-position).
#
# - `"noise"` and `"mask"`, as drawn;
# - `"inputs"`: `(x + 0.1 * noise) / 0.75` where the mask keeps, 0 elsewhere.
#
# <details><summary>If jax.random.normal complains about the keys</summary>
#
# It takes one key. `jax.vmap(lambda key: jax.random.normal(key, (d,)))(keys)` draws one row from each.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "corrupt", "locked": false, "schema_version": 3, "solution": true, "task": false}
def corrupt(keys, x):
    """{"noise", "mask", "inputs"}: each row drawn from keys of its own."""
    ### BEGIN SOLUTION
    noise = jax.vmap(lambda key: jax.random.normal(key, x.shape[1:]))(keys["noise"])
    mask = jax.vmap(lambda key: jax.random.bernoulli(key, 0.75, x.shape[1:]))(keys["mask"])
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, (x + 0.1 * noise) / 0.75, 0.0)}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_corrupt", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
keys = jax.random.split(jax.random.key(11, impl="threefry2x32"), (2, 4))
got = corrupt({"noise": keys[0], "mask": keys[1]}, x)
noise, mask = np.asarray(got["noise"]), np.asarray(got["mask"]).astype(bool)
assert noise.shape == mask.shape == x.shape, f"expected the shape of x; got {noise.shape}, {mask.shape}."
expected = np.where(mask, (np.asarray(x) + 0.1 * noise) / 0.75, 0)
assert np.allclose(got["inputs"], expected, atol=1e-6), f"expected {expected}; got {got['inputs']}."
other = corrupt({"noise": keys[1], "mask": keys[1]}, x)
assert (np.asarray(other["mask"]).astype(bool) == mask).all(), "expected the mask to follow its own key."
print("Task 4: the visible asserts pass. Hidden ones change one key at a time.")

# %% [markdown]
# ## Task 5 · train_step
#
# *6 minutes.* Put the pieces together. `train_step(state, shard, rows, x, y, lr)` takes a key from the state, makes the keys
# of its examples, corrupts `x`, and takes one step of gradient descent on `mse` of the corrupted inputs. It returns the
# new state and `{"loss": ..., "keys": ..., "inputs": ...}`: the loss before the update, the keys of task 3, and the
# corrupted inputs. The state that came in stays as it was.
#
# Look back at [One parent, one owner](../course/02_random_keys/02_random_keys.ipynb#One-parent,-one-owner)
# and at [An identity, not a position](../course/02_random_keys/02_random_keys.ipynb#An-identity,-not-a-position).
#
# `shapes_of` traces your step and computes nothing: a quick test that it can be compiled.


# %% nbgrader={"grade": false, "grade_id": "given_shapes_of", "locked": true, "schema_version": 3, "solution": false, "task": false}
def shapes_of(*arguments):
    """Dtype and shape of everything that train_step returns."""
    traced = jax.eval_shape(train_step, *arguments)
    return jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", traced)


# %% nbgrader={"grade": false, "grade_id": "train_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_step(state, shard, rows, x, y, lr):
    """(new state, {"loss", "keys", "inputs"})."""
    ### BEGIN SOLUTION
    state, key = take_key(state)
    keys = example_keys(key, shard, rows)
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": params}, {"loss": loss, "keys": keys, "inputs": inputs}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_train_step", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
run, seen, rows = start, [], jnp.arange(4)
for _ in range(3):
    run, report = train_step(run, 0, rows, x, y, 0.05)
    seen += [words(key) for use in ("noise", "mask") for key in report["keys"][use]]
assert len(set(seen)) == 24, f"expected 24 keys in 3 steps of 4 rows and 2 uses; got {len(set(seen))}."
shuffle = jnp.array([2, 0, 3, 1])
straight, _ = train_step(start, 0, rows, x, y, 0.05)
shuffled, _ = train_step(start, 0, rows[shuffle], x[shuffle], y[shuffle], 0.05)
w, v = np.asarray(straight["params"]["w"]), np.asarray(shuffled["params"]["w"])
assert np.allclose(w, v, atol=1e-6), f"expected one update in any order; got {w} and {v}."
got = shapes_of(start, 0, rows, x, y, 0.05)[0]["step"]
assert got == "int32[]", f"expected step to stay int32[]; got {got}."
print("Task 5: the visible asserts pass. Hidden ones take other states, shards and rates.")

# %% [markdown]
# ## Task 6 · save_state and load_state
#
# *5 minutes.* `save_state(state)` returns a dict that any file format can hold: NumPy arrays, numbers and text, as deep as
# you like, and no typed key. `load_state(saved)` returns the state, so that the run goes on as if it had never stopped. The
# key may be of any implementation. Neither changes the dict that it gets.
#
# Look back at [The stream goes on](../course/02_random_keys/02_random_keys.ipynb#The-stream-goes-on).
#
# <details><summary>If the wrong implementation comes back</summary>
#
# `rbg` and `unsafe_rbg` keys have data of the same shape, so it cannot be told from the data. `jax.random.key_impl(key)` is
# the name, and `jax.random.wrap_key_data(data, impl=name)` makes the key.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "checkpoint", "locked": false, "schema_version": 3, "solution": true, "task": false}
def save_state(state):
    """The state as NumPy arrays, numbers and text."""
    ### BEGIN SOLUTION
    return {
        "params": jax.tree.map(np.asarray, state["params"]),
        "key_data": np.asarray(jax.random.key_data(state["key"])),
        "key_impl": str(jax.random.key_impl(state["key"])),
        "step": np.asarray(state["step"]),
    }
    ### END SOLUTION


def load_state(saved):
    """The state that was saved."""
    ### BEGIN SOLUTION
    key = jax.random.wrap_key_data(jnp.asarray(saved["key_data"]), impl=saved["key_impl"])
    params = jax.tree.map(jnp.asarray, saved["params"])
    return {"params": params, "key": key, "step": jnp.asarray(saved["step"])}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_checkpoint", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
import json

saved = save_state(run)
json.dumps(jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), saved))  # raises for a typed key
back = load_state(saved)
assert words(back["key"]) == words(run["key"]), f"expected the key {words(run['key'])}; got {words(back['key'])}."
_, resumed = train_step(back, 0, rows, x, y, 0.05)
_, went_on = train_step(run, 0, rows, x, y, 0.05)
for use in ("noise", "mask"):
    a, b = (words(report["keys"][use][0]) for report in (resumed, went_on))
    assert a == b, f"expected the next step to use {b} for its {use}; after loading it uses {a}."
print("Task 6: the visible asserts pass. Hidden ones use other keys and implementations.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - The keys themselves, over many steps: which are handed out, which are kept, and whether any comes twice.
# - That the same state, step and example give the same keys, in any order and any size of batch; that another run key,
#   step, shard or row gives others.
# - What changes in the noise and the mask when one key changes.
# - Loss and parameters after a step, against the formula in float64.
# - That the step can be traced, leaves its arguments alone and reads no global key.
# - Saved states: what they hold, and how a run goes on from them.

# %% [markdown]
# ## Going further
#
# - Write `take_key` in the other style. What would a change from one to the other do to a run that is in the middle?
# - Run your step under `jax.debug_key_reuse(True)`. Then plant a reuse that it does not see.
# - Give a micro-batch loop its keys: what identifies a micro-batch, and does an example's noise depend on it?
# - Take a project of yours and draw its key tree for one step. Who is the owner of each key?
