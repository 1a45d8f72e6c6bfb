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
#     lab: lab03_pytrees
# ---

# %% [markdown]
# # Lab 03 · Structured state
#
# ## Situation
#
# A classifier of digits was moved from PyTorch, and is fine-tuned with gradients from another process. Its leaves are counted
# and their shapes compared. Still the answers are wrong from the start, one bias has become a vector of equal numbers, and
# the averaged weights are those of another layer. People have reported the parts:
# [a silent broadcast](https://github.com/pytorch/pytorch/issues/16045), [a `None` that vanished](https://github.com/jax-ml/jax/issues/2348),
# [keys in another order](https://github.com/jax-ml/jax/issues/4085), [weights that fit and give other outputs](https://github.com/patrick-kidger/equinox/issues/574).
#
# You write the comparison that names the path, and the conversion that can prove itself. About 35 minutes.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions and imports inside those
# cells: only they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones on random trees.

# %% nbgrader={"grade": false, "grade_id": "given_data", "locked": true, "schema_version": 3, "solution": false, "task": false}
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from traceonce.data import digits, torch_digits

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too


@jax.tree_util.register_dataclass
@dataclass
class Linear:
    """A linear layer: weight (inputs, outputs), bias (outputs,)."""

    weight: jax.Array
    bias: jax.Array


# %% nbgrader={"grade": false, "grade_id": "given_trees", "locked": true, "schema_version": 3, "solution": false, "task": false}
def small(weight=0.0, bias=0.0):
    """A tree as in the tasks: a dict with a list, two layers, and None where there are no parameters."""
    full = lambda shape, value: np.full(shape, value, "float32")
    layers = [Linear(full((2, 3), weight), full(3, bias)), None, Linear(full((3, 3), weight), full(3, bias))]
    return {"encoder": layers, "scale": np.float32(1)}


for path, leaf in jax.tree.leaves_with_path(small()):
    print("params" + jax.tree_util.keystr(path), leaf.shape)

# %% [markdown]
# ## Task 1 · validate_update
#
# *10 minutes, the heart of the lab.* `validate_update(params, grads)` returns nothing if `grads` fits: the same structure
# (containers, names, `None`), and at each leaf exactly the shape **and** dtype of the parameter. Otherwise it raises a
# `ValueError` whose message names **every** leaf that does not fit and no other, by its path in full:
# `params['encoder'][2].weight`. That goes for a leaf that only one tree has, too. Where containers alone differ, as a tuple
# from a list, any message will do. It also runs inside `jit`.
#
# Look back at [One name changed](../course/03_pytrees/03_pytrees.ipynb#One-name-changed)
# and at [The same name, another shape](../course/03_pytrees/03_pytrees.ipynb#The-same-name,-another-shape).

# %% [markdown]
# <details><summary>If an extra leaf of grads goes unnoticed</summary>
#
# A loop over the paths of `params` cannot meet it. Compare the two *sets* of paths.
#
# </details>
#
# <details><summary>If a tuple passes for a list</summary>
#
# Both have the paths `[0]`, `[1]`. `jax.tree.structure` tells them apart, and sees `None` and empty dicts as well.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "validate_update", "locked": false, "schema_version": 3, "solution": true, "task": false}
def validate_update(params, grads):
    """Raises a ValueError that names each leaf of `grads` that does not fit `params`."""
    ### BEGIN SOLUTION
    wanted, got = (
        {
            jax.tree_util.keystr(path): f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}"
            for path, leaf in jax.tree.leaves_with_path(tree)
        }
        for tree in (params, grads)
    )
    odd = [
        f"params{path}: {wanted.get(path, 'no leaf')} in params, {got.get(path, 'no leaf')} in grads"
        for path in {**wanted, **got}
        if wanted.get(path) != got.get(path)
    ]
    if odd:
        raise ValueError("\n".join(odd))
    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_update", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_update(params, grads):
    """The message of `validate_update`'s ValueError, or None where it accepts."""
    try:
        validate_update(params, grads)
    except ValueError as error:
        return str(error)
    return None


# %% nbgrader={"grade": true, "grade_id": "test_validate_update", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
said = try_update(small(), small(1.0, 2.0))
assert said is None, f"expected these to fit; got: {said}"

grads = small()
grads["encoder"][2].weight = jnp.ones(3)  # broadcasts against (3, 3)
said = try_update(small(), grads)
assert said is not None, "expected a ValueError for shape (3,) against (3, 3): it broadcasts."
assert "params['encoder'][2].weight" in said, f"expected the path in full; got: {said}"
assert "['encoder'][0]" not in said, f"expected no leaf that fits; got: {said}"

grads = small()
grads["gain"] = grads.pop("scale")
said = str(try_update(small(), grads))
assert "params['scale']" in said, f"expected the path that grads lacks; got: {said}"
assert "params['gain']" in said, f"expected the path that params lacks; got: {said}"
print("Task 1: the visible asserts pass. Hidden ones try dtypes, None, containers, two faults, and jit.")

# %% [markdown]
# ## Task 2 · ema_update
#
# *7 minutes.* An exponential moving average of the parameters, for evaluation: a new tree with
# `decay * ema + (1 - decay) * params` at each leaf. `ema` and `params` have the same structure and shapes. The result has
# `ema`'s structure and, at each leaf, `ema`'s **dtype**: a float32 average of bfloat16 parameters stays float32. A leaf of an
# integer dtype is a counter, and is taken from `params` as it is. Both trees that came in stay as they were. It runs inside
# `jit`, where `decay` may be traced.
#
# Look back at [Structure, leaves and paths](../course/03_pytrees/03_pytrees.ipynb#Structure,-leaves-and-paths)
# and at [None, empty, order, tuple](../course/03_pytrees/03_pytrees.ipynb#None,-empty,-order,-tuple).
#
# <details><summary>If two leaves change places</summary>
#
# `dict.values()` goes by insertion, `jax.tree.leaves` by sorted key. Let `jax.tree.map` find the partners.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "ema_update", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ema_update(ema, params, decay):
    """A new tree: decay * ema + (1 - decay) * params, in the dtypes of `ema`; counters from `params`."""

    ### BEGIN SOLUTION
    def average(old, new):
        if jnp.issubdtype(old.dtype, jnp.integer):
            return new
        return (decay * old + (1 - decay) * new).astype(old.dtype)

    return jax.tree.map(average, ema, params)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_ema_update", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
before = {"layers": [Linear(jnp.zeros(3), jnp.ones(3)), None], "steps": jnp.int32(4)}
new = {"layers": [Linear(jnp.full(3, 8.0), jnp.full(3, 5.0)), None], "steps": jnp.int32(5)}
after = ema_update(before, new, 0.75)
layer = after["layers"][0]
assert layer.weight.tolist() == [2.0] * 3, f"expected 0.75 * 0 + 0.25 * 8 = 2; got {layer.weight}"
assert layer.bias.tolist() == [2.0] * 3, f"expected 0.75 * 1 + 0.25 * 5 = 2; got {layer.bias}"
assert jax.tree.structure(after) == jax.tree.structure(before), "expected ema's structure, None included."
assert after["steps"].dtype == "int32", f"expected an int32 counter; got {after['steps'].dtype}"
assert int(after["steps"]) == 5, f"expected the counter of params, 5; got {after['steps']}"
assert before["layers"][0].weight.tolist() == [0.0] * 3, "expected ema to stay as it was."
print("Task 2: the visible asserts pass. Hidden ones change the order of keys, and the dtypes.")

# %% [markdown]
# ## Task 3 · Affine
#
# *7 minutes.* Write the class `Affine(scale, shift, activation)`. Called with `x`, it gives
# `activation(scale * x + shift)`, where `activation` is the name of a function in `jnp`, such as `"tanh"`. It is a pytree:
# `scale` and `shift` are its two leaves, in this order, and the name is metadata. New values cost no trace; a new name costs
# one, and is another structure. `jax.tree.map` works on it with any function, also one that returns shapes. It has the
# attributes `scale`, `shift` and `activation`.
#
# Look back at [Your own classes](../course/03_pytrees/03_pytrees.ipynb#Your-own-classes)
# and at [Data and metadata](../course/03_pytrees/03_pytrees.ipynb#Data-and-metadata).
#
# Register it in the way that you like: as a dataclass, as an `eqx.Module`, or with `register_pytree_node_class`.

# %% [markdown]
# <details><summary>If jax.tree.map(jnp.shape, ...) raises or gives arrays</summary>
#
# Unflattening calls the constructor with whatever the leaves are now: shapes, tracers, `None`. A constructor that checks or
# converts its arguments breaks that.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "affine", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
from dataclasses import field


@jax.tree_util.register_dataclass
@dataclass
class Affine:
    scale: jax.Array
    shift: jax.Array
    activation: str = field(metadata={"static": True})

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)


### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_affine", "locked": true, "schema_version": 3, "solution": false, "task": false}
def leaves_of(scale, shift, activation):
    return jax.tree.leaves(Affine(scale, shift, activation))


def doubled_at(scale, shift, activation, x):
    """The value at x after a tree.map has doubled all leaves."""
    return jax.tree.map(lambda leaf: 2 * leaf, Affine(scale, shift, activation))(x)


def shapes_of(scale, shift, activation):
    module = jax.tree.map(jnp.shape, Affine(scale, shift, activation))
    return module.scale, module.shift, module.activation


# %% nbgrader={"grade": false, "grade_id": "given_traces", "locked": true, "schema_version": 3, "solution": false, "task": false}
def traces_of(modules, x):
    """How many traces it takes to call these (scale, shift, activation) one after another."""
    traces = []
    run = jax.jit(lambda module, x: (traces.append(1), module(x))[1])
    for module in modules:
        run.trace(Affine(*module), x)
    return len(traces)


def same_structure(first, second):
    """Whether these two (scale, shift, activation) are trees of one structure."""
    return jax.tree.structure(Affine(*first)) == jax.tree.structure(Affine(*second))


# %% nbgrader={"grade": true, "grade_id": "test_affine", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
two, three = jnp.array([2.0, 2.0]), jnp.array([3.0, 3.0])
found = [np.asarray(leaf).tolist() for leaf in leaves_of(two, three, "abs")]
assert found == [[2.0, 2.0], [3.0, 3.0]], f"expected scale and shift as the leaves; got {found}"
value = doubled_at(two, three, "negative", jnp.ones(2)).tolist()
assert value == [-10.0, -10.0], f"expected -(4 * 1 + 6) = -10; got {value}"
shapes = shapes_of(two, three, "abs")
assert shapes == ((2,), (2,), "abs"), f"expected the shapes themselves; got {shapes}"
traces = traces_of([(two, three, "abs"), (three, two, "abs"), (two, three, "sin")], two)
assert traces == 2, f"expected a trace for abs and one for sin; got {traces}"
assert not same_structure((two, three, "abs"), (two, three, "sin")), "expected another structure for another name."
print("Task 3: the visible asserts pass. Hidden ones use other values, names and sizes.")

# %% [markdown]
# ## Task 4 · convert
#
# *10 minutes.* `convert(state_dict)` turns a checkpoint of the lesson's classifier, in PyTorch's names and layout, into two
# trees. What is trained:
#
# Look back at [Weights from PyTorch](../course/03_pytrees/03_pytrees.ipynb#Weights-from-PyTorch)
# and at [Not everything in it is a parameter](../course/03_pytrees/03_pytrees.ipynb#Not-everything-in-it-is-a-parameter).
#
# ```python
# params = {"encoder": [Linear, None, Linear, None],      # from encoder.0 and encoder.2
#           "norm": {"scale": ..., "shift": ...},         # norm.weight, norm.bias
#           "head": Linear}
# ```
#
# and what is not: `stats = {"mean": ..., "var": ..., "steps": ...}`, from `norm.running_mean`, `norm.running_var` and
# `norm.num_batches_tracked`, the last with an integer dtype.

# %% [markdown]
# Sizes are those of the arrays, whatever they are. Entries are found by name, in any order. An entry that is missing, or one
# that has no place here, raises a `KeyError` or `ValueError` that names it. The dict that came in stays as it was.
#
# <details><summary>If every shape fits and the scores do not</summary>
#
# A square matrix fits either way. PyTorch's weight is (outputs, inputs), always; `reshape` is no transposition.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "convert", "locked": false, "schema_version": 3, "solution": true, "task": false}
def convert(state_dict):
    """(params, stats) of a checkpoint in PyTorch's layout."""
    ### BEGIN SOLUTION
    left = dict(state_dict)
    take = lambda name: jnp.asarray(left.pop(name))
    linear = lambda name: Linear(take(name + ".weight").T, take(name + ".bias"))
    params = {
        "encoder": [linear("encoder.0"), None, linear("encoder.2"), None],
        "norm": {"scale": take("norm.weight"), "shift": take("norm.bias")},
        "head": linear("head"),
    }
    stats = {name: take(f"norm.running_{name}") for name in ("mean", "var")}
    stats["steps"] = take("norm.num_batches_tracked")
    if left:
        raise ValueError(f"no place for {', '.join(left)}")
    return params, stats
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_forward", "locked": true, "schema_version": 3, "solution": false, "task": false}
@jax.jit
def forward(params, stats, x):
    """Scores of the rows of x, in evaluation mode."""
    for layer in params["encoder"]:
        x = jnp.tanh(x) if layer is None else x @ layer.weight + layer.bias
    x = (x - stats["mean"]) / jnp.sqrt(stats["var"] + 1e-5)
    x = x * params["norm"]["scale"] + params["norm"]["shift"]
    return x @ params["head"].weight + params["head"].bias


# %% nbgrader={"grade": true, "grade_id": "test_convert", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
checkpoint, (pixels, labels) = torch_digits(), digits()
params, stats = convert(checkpoint.state_dict)
parts = sorted(params), sorted(stats)
assert parts == (["encoder", "head", "norm"], ["mean", "steps", "var"]), f"the parts are {parts}"
scores = np.asarray(forward(params, stats, pixels[1200:]))
right = int((scores.argmax(axis=1) == labels[1200:]).sum())
assert right == checkpoint.right, f"expected PyTorch's {checkpoint.right} of 597 right; got {right}."
off = np.abs(np.asarray(forward(params, stats, pixels[:8])) - checkpoint.scores).max()
assert off < 1e-3, f"expected the scores that PyTorch recorded; the largest difference is {off:.2g}."
assert "head.bias" in checkpoint.state_dict, "expected the state dict to stay as it was."
print("Task 4: forward parity with PyTorch", checkpoint.version, "holds. Hidden asserts use other checkpoints.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - Random trees with several kinds of container, and one fault at a time: which paths the message names, and which it does not.
# - Averages on random values, with dicts in another order, mixed dtypes, and counters; and inside `jit`.
# - The leaves of your class, its values after a `tree.map`, and the number of traces.
# - Checkpoints of other sizes, with a square layer, shuffled, with an entry missing or one too many; scores in float64.
# - That arguments are the same after the call.

# %% [markdown]
# ## Going further
#
# - Call `validate_update` at the top of a jitted step. What does it cost in a call that does not trace?
# - Save `params` with its paths and with its scores on eight digits, as the lesson does, and load it back with proof.
# - Take a checkpoint of a project of yours. Which entries are buffers, and where would a `reshape` go unnoticed?
