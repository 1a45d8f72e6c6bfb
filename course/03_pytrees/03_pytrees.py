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
# # 03 · Structured state
#
# A PyTorch model keeps its tensors in an object and hands them out by name. JAX takes any nesting of dicts, lists and
# classes apart into arrays, and puts it together again. After this lesson you can say what such a tree is, compare two of
# them so that nothing slips through, and move weights out of PyTorch with a proof.
#
# About 50 minutes. You need lesson 01.

# %% [markdown]
# ## Question
#
# Somebody moved a classifier of digits from PyTorch to JAX. The checkpoint is a real one, recorded from PyTorch together
# with PyTorch's own answers. Shapes and dtypes are what you would expect; a linear layer's weight is
# (outputs, inputs).

# %%
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import predict, watch
from traceonce.data import digits, torch_digits

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

# %%
checkpoint, (pixels, labels) = torch_digits(), digits()
for name, array in checkpoint.state_dict.items():
    print(f"{name:25} {array.dtype}{list(array.shape)}")
print(f"PyTorch {checkpoint.version} got {checkpoint.right} of the last 597 digits right")

# %% [markdown]
# The JAX side: a model is a nested dict with the same names, and `scores` computes with it. It multiplies from the other
# side, so here a weight is (inputs, outputs). `None` stands where PyTorch's `Sequential` has a tanh, which has no
# parameters.


# %%
def linear(inputs, outputs):
    return {"weight": jnp.zeros((inputs, outputs)), "bias": jnp.zeros(outputs)}


norm = {name: jnp.zeros(16) for name in ("weight", "bias", "running_mean", "running_var")}
encoder = [linear(64, 16), None, linear(16, 16), None]
template = {"encoder": encoder, "norm": norm, "head": linear(16, 10)}


# %%
def scores(model, x):
    for layer in model["encoder"]:
        x = jnp.tanh(x) if layer is None else x @ layer["weight"] + layer["bias"]
    norm, head = model["norm"], model["head"]
    x = (x - norm["running_mean"]) / jnp.sqrt(norm["running_var"] + 1e-5)
    return (x * norm["weight"] + norm["bias"]) @ head["weight"] + head["bias"]


# %% [markdown]
# The converter looks up each leaf of the template by its name, and turns a matrix round where its shape does not fit. Then
# it is checked: as many leaves, equal shapes, equal dtypes.


# %%
def by_shape(path, leaf):
    array = checkpoint.state_dict[jax.tree_util.keystr(path, simple=True, separator=".")]
    return jnp.asarray(array if array.shape == leaf.shape else array.T)


def right(model):
    return int((scores(model, pixels[1200:]).argmax(axis=1) == labels[1200:]).sum())


# %%
moved = jax.tree.map_with_path(by_shape, template)
pairs = list(zip(jax.tree.leaves(moved), jax.tree.leaves(template), strict=True))
print(f"{len(pairs)} leaves, and as many in the template")
print("shapes equal:", all(got.shape == wanted.shape for got, wanted in pairs))
print("dtypes equal:", all(got.dtype == wanted.dtype for got, wanted in pairs))
print(f"right: {right(moved)} of 597; PyTorch: {checkpoint.right}")

# %% [markdown]
# Every check holds, nothing warned, and four of five right answers are gone. Say now what was *not* compared; the answer
# comes at the end, when you have the tools.

# %%
kinds = ["the paths", "the shapes", "the dtypes", "an answer"]
guess_missing = predict("03-Q1", "Which comparison will tell the moved model from a right one?", kinds)

# %% [markdown]
# ## Before you run
#
# A **pytree** is a nesting of containers. Dicts, lists, tuples, named tuples and `None` are containers from the start;
# whatever is none is a **leaf**. JAX never asks whether a leaf is an array until it has to compute with it.

# %%
question = "template has dicts, a list, two None and some arrays. How many leaves?"
guess = predict("03-T1", question, [3, 10, 12])

# %% [markdown]
# ## Structure, leaves and paths
#
# `jax.tree.flatten` takes a tree apart: a list of leaves, and the **structure** (a *treedef*), which is the nesting without
# its leaves. The two together give the tree back. Every transformation of JAX does this with every argument.

# %% claims=["T1"]
leaves, structure = jax.tree.flatten(template)
guess.reveal(len(leaves))
zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}
print(jax.tree.leaves(zero))
print(jax.tree.structure(zero))
back = jax.tree.unflatten(jax.tree.structure(zero), ["first", "second"])
print("any two leaves will do:", back)

# %% [markdown]
# `None` is a container with nothing in it. A dict is flattened by sorted key, so `b` comes first. Each leaf has a
# **path**, which `jax.tree_util.keystr` writes the way you would type it. Here is the tree as a picture.


# %%
def rows_of(tree, name):
    """(depth, path, note) of each container, leaf and None, top down."""
    notes, keystr = {}, jax.tree_util.keystr
    for path, leaf in jax.tree.leaves_with_path(tree, is_leaf=lambda v: v is None):
        for depth in range(len(path)):
            notes.setdefault((depth, name + keystr(path[:depth])), "")
        note = "None" if leaf is None else f"{leaf.dtype}{list(leaf.shape)}"
        notes[len(path), name + keystr(path)] = note
    return [(depth, path, note) for (depth, path), note in notes.items()]


# %%
from html import escape


def drawn(rows, about):
    """Rows as SVG: a container is a box, a leaf has round ends, a None is dashed."""
    shapes = [f'<rect width="640" height="{len(rows) * 28 + 6}" stroke="none"/>']
    parents = {}
    for number, (depth, path, note) in enumerate(rows):
        left, top, text = 8 + 36 * depth, 4 + 28 * number, f"{path}  {note}".rstrip()
        if depth:
            shapes.append(f'<path d="M{left - 22} {parents[depth - 1]}V{top + 11}H{left}" fill="none"/>')
        kind = ' stroke-dasharray="5 4"' if note == "None" else ' rx="11" stroke-width="2"' if note else ""
        shapes.append(f'<rect x="{left}" y="{top}" width="{16 + 8 * len(text)}" height="22"{kind}/>')
        words = f'<text x="{left + 8}" y="{top + 15}" fill="#1f2328" stroke="none">{escape(text)}</text>'
        shapes.append(words)
        parents[depth] = top + 22
    group = f'<g fill="#fff" stroke="#1f2328" font-family="monospace" font-size="13">{"".join(shapes)}</g>'
    size = f'viewBox="0 0 640 {len(rows) * 28 + 6}" width="640" role="img"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><title>{escape(about)}</title>{group}</svg>'


# %%
class Picture:
    """A tree with its paths, as text and as a picture."""

    def __init__(self, tree, name):
        self.rows = rows_of(tree, name)

    def __repr__(self):
        return "\n".join(f"{'    ' * depth}{path}  {note}".rstrip() for depth, path, note in self.rows)

    def _repr_mimebundle_(self, **_):
        return {"text/plain": repr(self), "image/svg+xml": drawn(self.rows, repr(self))}


# %% claims=["T1"]
Picture(template, "params")

# %% [markdown]
# `jax.tree.map(f, tree, *others)` calls `f` with the leaves that have the same place, and builds a tree of the first
# one's structure. A gradient is such a tree: `jax.grad` returns one leaf for each leaf of its argument, in the same
# nesting. The four rows of lesson 01 again:


# %%
x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])


def mse(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


# %%
def update(params, grads):
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads)


# %% claims=["T1"]
grads = jax.grad(mse)(zero, x, y)
print({name: leaf.tolist() for name, leaf in grads.items()})
print("same structure:", jax.tree.structure(grads) == jax.tree.structure(zero))
print({name: np.float64(leaf).round(3).tolist() for name, leaf in update(zero, grads).items()})

# %% [markdown]
# ### One name changed
#
# Gradients come from elsewhere now: another process, a file, a library that calls its weights `kernel`. The leaf count
# and all shapes are equal.

# %%
renamed = {"kernel": grads["w"], "b": grads["b"]}
outcomes = ["pairs them by order", "skips what has no partner", "raises"]
guess = predict("03-T2", "What does jax.tree.map do with w in one tree, kernel in the other?", outcomes)

# %%
import re
from contextlib import contextmanager


@contextmanager
def refused(kind):
    try:
        yield
    except kind as error:
        said = re.sub(" at 0x[0-9a-f]+", "", str(error)).splitlines()[0]
        print(f"{type(error).__name__}: {said.split('. ')[0]}")
    else:
        raise AssertionError(f"expected {kind.__name__}, and nothing was raised")


# %% claims=["T2"]
print("leaf counts:", len(jax.tree.leaves(renamed)), len(jax.tree.leaves(zero)))
print("structures equal:", jax.tree.structure(renamed) == jax.tree.structure(zero))
with refused(ValueError):
    update(zero, renamed)
guess.reveal("raises")

# %% [markdown]
# Two leaves and two leaves, and another schema: the names belong to the structure. So a comparison of leaf *counts*, or of
# `zip(leaves, leaves)`, throws away what `tree.map` checks for nothing.

# %% [markdown]
# ### None, empty, order, tuple
#
# Which of these pairs are the same structure? The two of a pair have equally many leaves, and none of the checks so far
# tells them apart.

# %% claims=["T6"]
from collections import OrderedDict

pairs = {
    "None or an absent entry": ({"w": 1, "scale": None}, {"w": 1}),
    "empty or an absent entry": ({"w": 1, "head": {}}, {"w": 1}),
    "two orders of a dict": ({"w": 1, "b": 2}, {"b": 2, "w": 1}),
    "two orders of an OrderedDict": (OrderedDict(w=1, b=2), OrderedDict(b=2, w=1)),
    "tuple or list": ((1, 2), [1, 2]),
}
for what, (one, other) in pairs.items():
    same = jax.tree.structure(one) == jax.tree.structure(other)
    print(f"{what:29} {'same' if same else 'differs'}")

# %% [markdown]
# Only the order of a plain dict does not matter. JAX sorts its keys, so the *leaves* come in another order than
# `dict.values()` gives, and whoever zips the two pairs the wrong ones:

# %% claims=["T6"]
model = {"w": "weights", "b": "bias"}
print("values:", list(model.values()), "  leaves:", jax.tree.leaves(model))
print("zipped:", list(zip(model, jax.tree.leaves(model), strict=True)))

# %% [markdown]
# `None` carries no leaf, so it vanishes from a list of leaves
# ([asked in 2020](https://github.com/jax-ml/jax/issues/2348)). Where it stands for a value, say so with `is_leaf`. And
# where one tree has `None` and the other a leaf, two things can happen.

# %%
question = "jax.tree.map(lambda p, g: (p, g), [1.0], [None]) gives what?"
guess = predict("03-D01", question, ["it raises", "[(1.0, None)]", "[]"])

# %% claims=["T6"]
print("leaves:      ", jax.tree.leaves([1, None, 3]))
print("with is_leaf:", jax.tree.leaves([1, None, 3], is_leaf=lambda v: v is None))
guess.reveal(str(jax.tree.map(lambda p, g: (p, g), [1.0], [None])))
with refused(ValueError):
    jax.tree.map(lambda p, g: (p, g), [None], [1.0])

# %% [markdown]
# The first tree rules. Below one of *its* leaves anything may stand in the other, and your function gets it whole: `None`,
# a dict, a list. A `None` of the first tree must meet a `None`. (In 2020 that mismatch passed too.) Comparing structures
# beforehand treats both alike.

# %% [markdown]
# ## The same name, another shape
#
# Structures are equal from here on. A gradient for `w` comes back as one number, because somebody took a mean too many.
# The place is right, the name is right.

# %%
scalar = {"w": jnp.float32(-4.5), "b": jnp.float32(-2.5)}
question = "w is [0, 0] and its gradient the scalar -4.5, lr 0.05. The new w?"
guess = predict("03-T3", question, ["it raises", "[0.225, 0.0]", "[0.225, 0.225]"])

# %% claims=["T3"]
print("structures equal:", jax.tree.structure(scalar) == jax.tree.structure(zero))
wrong = update(zero, scalar)
guess.reveal(str([round(value, 3) for value in wrong["w"].tolist()]))

# %% [markdown]
# It **broadcasts**. Both weights move alike, the loss may even fall, and the right update was `[0.225, 0.075]`.
# `tree.map` compares structures and leaves the leaves to your function; and `p - lr * g` is glad of any shape that
# broadcasts. Some of them give a new shape, and then the step compiles again:


# %%
def after(params, grads):
    moved = jax.eval_shape(update, params, grads)
    return {name: f"{leaf.dtype}{list(leaf.shape)}" for name, leaf in moved.items()}


# %% claims=["T3"]
half = jax.tree.map(lambda leaf: leaf.astype("bfloat16"), zero)
print("gradient of shape (4, 2):", after(zero, {"w": jnp.ones((4, 2)), "b": jnp.ones(())}))
print("bfloat16 parameters, float32 gradient:", after(half, grads))

# %% [markdown]
# The second line is about dtypes: half-precision parameters become float32 at their first update. No check of shapes sees
# that. Shapes **and** dtypes have to be equal, leaf by leaf. As a yes or no it is one line; *which* leaf it is, your lab's
# function will say.


# %%
def contract(tree):
    """The tree with a shape and a dtype at each leaf, in one word."""
    return jax.tree.map(lambda leaf: f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}", tree)


# %% claims=["T3"]
print("grads fit: ", contract(grads) == contract(zero))
print("scalar fits:", contract(scalar) == contract(zero), " half fits:", contract(half) == contract(zero))

# %% [markdown]
# The most common broadcast is in the loss: predictions of shape (n, 1) minus targets of shape (n,) are an (n, n) table
# ([2019](https://github.com/pytorch/pytorch/issues/16045); PyTorch's `mse_loss` warns since, JAX does not). Here are
# *perfect* predictions:

# %%
perfect, targets = jnp.arange(4.0)[:, None], jnp.arange(4.0)
question = "Perfect predictions of shape (4, 1), targets of shape (4,). The mean squared error?"
guess = predict("03-D07", question, ["0.0", "2.5", "it raises"])

# %% claims=["T3"]
guess.reveal(str(float(jnp.mean((perfect - targets) ** 2))))
print("one axis:", float(jnp.mean((perfect[:, 0] - targets) ** 2)))
with refused(ValueError), jax.numpy_rank_promotion("raise"):
    perfect - targets

# %% [markdown]
# `jax.numpy_rank_promotion("raise")` refuses every broadcast that adds an axis. It is for tests: a bias added to a batch
# is such a broadcast too.

# %% [markdown]
# ## Your own classes
#
# A model has its arrays in an object. Here is one with two of them, and a name for what comes after.


# %%
class Plain:
    def __init__(self, scale, shift, activation):
        self.scale, self.shift, self.activation = scale, shift, activation


# %%
ones = jnp.ones(3)
guess = predict("03-T4", "jax.tree.leaves(Plain(ones, ones, 'tanh')): how many leaves?", [0, 1, 2, 3])

# %% claims=["T4"]
plain = Plain(ones, ones, "tanh")
guess.reveal(len(jax.tree.leaves(plain)))
print("the leaf is the object:", jax.tree.leaves(plain)[0] is plain)
with refused(TypeError):
    jax.jit(lambda m: m.scale)(plain)

# %% [markdown]
# An unknown class is no container, so the whole object is one leaf, and `jit` cannot make an array of it
# ([2021](https://github.com/google/flax/issues/853), then with the words "not a valid JAX type"). **Registering** says
# which fields are children and which are part of the structure:

# %%
from dataclasses import dataclass, field


@jax.tree_util.register_dataclass
@dataclass
class Affine:
    scale: jax.Array
    shift: jax.Array
    activation: str = field(metadata={"static": True})

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)


# %% claims=["T4"]
affine = Affine(ones, 0 * ones, "tanh")
for path, leaf in jax.tree.leaves_with_path({"encoder": [affine, None, affine]})[:2]:
    print("params" + jax.tree_util.keystr(path), leaf.tolist())
print(round(float(jax.jit(lambda m, x: m(x).sum())(affine, ones)), 3))

# %% [markdown]
# An `eqx.Module` is a dataclass that registers itself; `register_pytree_node_class` is the long form, with a
# `tree_flatten` and a `tree_unflatten` of your own. In all of them one rule is easily broken: **unflattening calls the
# constructor with whatever the leaves are now**, which may be tracers, shapes, `None` or axis numbers.


# %%
@jax.tree_util.register_dataclass
@dataclass
class Strict:
    scale: jax.Array

    def __post_init__(self):
        if self.scale.ndim != 1:
            raise ValueError("scale must be a vector")


# %% claims=["T4"]
with refused(AttributeError):
    jax.tree.map(jnp.shape, Strict(ones))
print(jax.tree.map(jnp.shape, affine))

# %% [markdown]
# A tree of shapes is a tree too, and so is one of axis numbers, of gradients or of optimizer state. Check values where you
# build the first object, in a function of your own, and not in the constructor.

# %% [markdown]
# ### Data and metadata
#
# Leaves are **data**: `jit` traces them. Static fields are **metadata**: part of the structure, and of the key under which
# the compiled program is kept. So what does each of these calls cost, after the first?


# %%
@watch
@jax.jit
def applied(module, x):
    return module(x).sum()


# %%
changes = {
    "other values": Affine(2 * ones, ones, "tanh"),
    "other metadata": Affine(ones, ones, "sin"),
    "None for an array": Affine(ones, None, "tanh"),
}
guess = predict("03-T5", "How many of the three changes trace anew: " + ", ".join(changes) + "?", [0, 1, 2, 3])

# %% claims=["T5"]
from contextlib import suppress

applied(affine, ones)
for what, module in changes.items():
    before = applied.counts.traces
    with suppress(TypeError):  # None is no number, and the trace finds that out
        applied(module, ones)
    print(f"{what:18} traces: {applied.counts.traces - before}")
guess.reveal(applied.counts.traces - 1)

# %% [markdown]
# Values are free, metadata and structure are not. That is as it should be: an activation decides the *program*. An array
# decides numbers in it, and if it becomes metadata by a slip, three things happen. The first call works.


# %%
@jax.tree_util.register_dataclass
@dataclass
class Frozen:
    scale: jax.Array
    table: jax.Array = field(metadata={"static": True})  # the slip


def weighted(module):
    return jnp.sum(module.scale * module.table)


# %%
new_calls = ["no trace", "one trace", "it raises"]
question = "jit(weighted)(Frozen(ones, ones)) has run. And with an equal array, Frozen(ones, ones + 0)?"
guess = predict("03-T5b", question, new_calls)

# %% claims=["T5"]
compiled = watch(jax.jit(weighted))
frozen = Frozen(ones, ones)
print("first call:", float(compiled(frozen)), "  same object again:", float(compiled(frozen)))
traces = compiled.counts.traces
try:
    compiled(Frozen(ones, ones + 0))
    guess.reveal(new_calls[compiled.counts.traces - traces])
except ValueError as error:
    print(str(error).split("(Note: ")[1])
    guess.reveal("it raises")

# %% [markdown]
# Metadata is compared with `==`, and `==` of arrays is an array. It fails at the first call with *another* array, which
# may be after an epoch. The second thing does not fail at all. What is the gradient of a static array?

# %% claims=["T5"]
table = jnp.array([5.0, 6.0, 7.0])
pulled = jax.grad(weighted)(Frozen(ones, table))
print("for scale:", pulled.scale.tolist(), "  in the place of table:", pulled.table.tolist())
print("leaves:", len(jax.tree.leaves(pulled)))

# %% [markdown]
# None: what stands there is the table itself. It is not trained, and nothing says so. The third: with a tuple in its
# place the comparison works, and then each new value is a program of its own. As data, one program serves all.


# %%
@jax.tree_util.register_dataclass
@dataclass
class Data:
    scale: jax.Array
    table: jax.Array


# %%
def traces_of(build):
    run = watch(jax.jit(lambda module: jnp.sum(module.scale * jnp.asarray(module.table))))
    for value in (1.0, 2.0, 3.0):
        run(build(value))
    return run.counts.traces


# %% claims=["T5"]
print("static tuple:", traces_of(lambda v: Frozen(ones, (v, v, v))), "traces")
print("data:        ", traces_of(lambda v: Data(ones, jnp.full(3, v))), "trace")

# %% [markdown]
# Equinox warns when such a module is built. (Lesson 01 has the same fault in another dress: a static `self` whose
# attribute [changes and is not seen](https://github.com/jax-ml/jax/issues/28418).)

# %%
import warnings

import equinox as eqx


class FrozenModule(eqx.Module):
    table: jax.Array = eqx.field(static=True)


# %% claims=["T5"]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    FrozenModule(table)
print(str(said[0].message).split("! ")[0])

# %% [markdown]
# ## What trains and what does not
#
# In an Equinox model everything is in one tree: arrays, and also functions. The optimizer wants a state for each leaf.

# %%
import optax

mlp = eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(0))
optimizer = optax.adam(1e-3)
for path, leaf in jax.tree.leaves_with_path(mlp):
    print("model" + jax.tree_util.keystr(path), list(leaf.shape) if eqx.is_array(leaf) else "a function")

# %%
question = "optimizer.init(mlp), with the functions in the tree?"
init_outcomes = ["skips the functions", "raises"]
guess = predict("03-T8", question, init_outcomes)

# %% claims=["T8"]
with refused(TypeError):
    optimizer.init(mlp)
guess.reveal("raises")
trained, rest = eqx.partition(mlp, eqx.is_inexact_array)
print("leaves:", len(jax.tree.leaves(mlp)), "=", len(jax.tree.leaves(trained)), "+", len(jax.tree.leaves(rest)))
print("optimizer state:", len(jax.tree.leaves(optimizer.init(trained))), "leaves")
print("one again:", bool(eqx.tree_equal(eqx.combine(trained, rest), mlp)))

# %% [markdown]
# `eqx.partition` gives two trees of the model's shape, each with `None` where the other has the leaf; `eqx.combine` takes
# at each place the first that is not `None`. `eqx.filter(mlp, ...)` is the first half alone, and the usual answer to
# [this error](https://github.com/patrick-kidger/equinox/issues/105). Nine is a count, and two moments of four arrays.

# %% [markdown]
# The filter belongs to **every** call that takes parameters. `update` takes them as well, for weight decay; plain `adamw`
# is forgiving there, `MultiSteps` [is not](https://github.com/patrick-kidger/equinox/issues/590).


# %%
def mean_output(model, x):
    return jax.vmap(model)(x).mean()


# %% claims=["T8"]
accumulating = optax.MultiSteps(optax.adamw(1e-2), 2)
pulls = eqx.filter_grad(mean_output)(mlp, jnp.ones((4, 2)))
state = accumulating.init(trained)
with refused(TypeError):
    accumulating.update(pulls, state, mlp)
moves, _ = accumulating.update(pulls, state, trained)
print("filtered:", jax.tree.structure(moves) == jax.tree.structure(trained))

# %% [markdown]
# ### Leaves on disk
#
# `eqx.tree_serialise_leaves` writes the leaves one after another. No path is in the file: the tree that you load into says
# which array is which. How clear is the error if the file is damaged? One byte in the middle of the *first weight* gets lost.


# %%
import io


def stored(tree):
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, tree)
    return file.getvalue()


def root(error):
    """What the exception at the bottom of a chain says."""
    return str(error) if error.__cause__ is None else root(error.__cause__)


def loaded(data, like):
    return eqx.tree_deserialise_leaves(io.BytesIO(data), like)


# %%
data = stored(mlp)
print("names in the file:", b"weight" in data, "  round trip:", bool(eqx.tree_equal(loaded(data, mlp), mlp)))
places = [".layers[0].weight", ".layers[0].bias", ".layers[1].bias"]
guess = predict("03-T8b", "A byte of .layers[0].weight is missing. Which leaf does the error name?", places)

# %% claims=["T8"]
body = data.index(b"\n") + 1  # here the numbers of the first weight begin
try:
    loaded(data[: body + 5] + data[body + 6 :], mlp)
except RuntimeError as error:
    guess.reveal(jax.tree_util.keystr(error.path))
    print("the cause:", root(error).split(". ")[0])

# %% [markdown]
# The weight took its 32 bytes, the last one from its neighbour. The failure shows one leaf later, and as something else:
# what follows no longer begins like an array, so NumPy takes it for a pickle, and offers to load it *unsafely*. Do not.
# Read such a message as "somewhere before this". Now a file in good order, and a template with one leaf more:

# %% claims=["T8"]
saved = stored([jnp.ones(2), None, jnp.ones(3), jnp.ones(())])
try:
    loaded(saved, [jnp.ones(2), jnp.ones(3), jnp.ones(3), jnp.ones(())])
except RuntimeError as error:
    print("not saved: [1]  named:", jax.tree_util.keystr(error.path), " cause:", root(error))

# %% [markdown]
# The file holds three arrays, the template wants four. `[1]` takes the array of `[2]`, whose shape happens to fit, and the
# error says that the file ends too early, at the last leaf. You would look for a broken download.

# %% [markdown]
# ## Weights from PyTorch
#
# Back to the classifier. `by_shape` turns a matrix round *if its shape does not fit*. The second layer is 16 by 16: it fits
# either way. Whether to transpose is a matter of **meaning**, not of shape: PyTorch computes `x @ weight.T`, we compute
# `x @ weight`, so every linear weight is transposed.


# %%
def by_meaning(path, leaf):
    name = jax.tree_util.keystr(path, simple=True, separator=".")
    array = checkpoint.state_dict[name]
    is_linear = name.endswith(".weight") and not name.startswith("norm.")
    return jnp.asarray(array.T if is_linear else array)


# %% claims=["T7"]
converted = jax.tree.map_with_path(by_meaning, template)
print("same contract as the wrong one:", contract(converted) == contract(moved))
print(f"right: {right(converted)} of 597; PyTorch: {checkpoint.right}")

# %% [markdown]
# A count of right answers is coarse, and here you are lucky to have labels. The sharp test is **forward parity**: the same
# rows through both models, before any training, in evaluation mode, compared number by number with what PyTorch gave.


# %%
def parity(model):
    """Whether the scores of eight digits are those that PyTorch recorded."""
    return bool(np.allclose(scores(model, pixels[:8]), checkpoint.scores, rtol=1e-3, atol=1e-3))


# %%
checks = {
    "the paths": lambda model: [path for path, _ in jax.tree.leaves_with_path(model)],
    "the shapes": lambda model: jax.tree.map(jnp.shape, model),
    "the dtypes": lambda model: jax.tree.map(jnp.result_type, model),
    "an answer": parity,
}

# %% claims=["T7"]
for kind, check in checks.items():
    print(f"{kind:11} {'equal' if check(moved) == check(converted) else 'DIFFER'}")
(telling,) = [kind for kind, check in checks.items() if check(moved) != check(converted)]
guess_missing.reveal(telling)

# %% [markdown]
# That is the answer to the opening question. Three comparisons look at the structure and its contract, and a transposed
# square matrix changes neither. Only an answer depends on every number.

# %% [markdown]
# Does a test on one row suffice? It depends on the row. This one is all zeros, as a blank page is. Its hidden layer sees
# the first bias alone, so a fault in the *first* weight cannot show.

# %%
swapped_first = jax.tree.map(lambda leaf: leaf, converted)  # a new tree with the same leaves
swapped_first["encoder"][0]["weight"] = converted["encoder"][0]["weight"][::-1]  # inputs in reverse order
question = "The first weight has its inputs reversed. Which rows show it?"
guess = predict("03-Q2", question, ["a blank page and a digit", "a digit alone", "neither"])

# %% claims=["T7"]
rows = {"a blank page": np.zeros((1, 64), "float32"), "a digit": pixels[:1]}
differs = lambda row: not np.allclose(scores(swapped_first, row), scores(converted, row), atol=1e-3)
shows = [what for what, row in rows.items() if differs(row)]
print("shows on:", shows)
guess.reveal({2: "a blank page and a digit", 1: "a digit alone", 0: "neither"}[len(shows)])

# %% [markdown]
# Another habit passes even the check of a matrix that is *not* square: `reshape` to the shape that is wanted. It was
# [reported from a real conversion](https://github.com/patrick-kidger/equinox/issues/574), of a transposed convolution, which
# needs a flip as well. Reshaping keeps the order of the numbers; transposing changes it.

# %% claims=["T7"]
reshaped = jax.tree.map_with_path(
    lambda path, leaf: by_meaning(path, leaf) if leaf.ndim < 2 else by_meaning(path, leaf).T.reshape(leaf.shape),
    template,
)
print("same contract:", contract(reshaped) == contract(converted), " parity:", parity(reshaped))
print(f"right: {right(reshaped)} of 597")

# %% [markdown]
# ### Not everything in it is a parameter
#
# One entry was left out: `num_batches_tracked`, a counter. And the running mean and variance are in the tree, but PyTorch
# never trains them: they are *buffers*. A gradient does not know that.


# %%
def loss(model, x, y):
    return -jnp.mean(jax.nn.log_softmax(scores(model, x))[jnp.arange(len(y)), y])


# %% claims=["T7"]
grads = jax.grad(loss)(converted, pixels[:8], labels[:8])
print("gradient for running_mean:", bool(jnp.any(grads["norm"]["running_mean"] != 0)))
counted = {**converted, "steps": jnp.asarray(checkpoint.state_dict["norm.num_batches_tracked"])}
print("the counter is", counted["steps"].dtype, "now")
with refused(TypeError):
    jax.grad(loss)(counted, pixels[:8], labels[:8])

# %% [markdown]
# An optimizer over this tree would train the running mean. So split by meaning, into parameters and statistics, and give
# `grad` the first tree only. In the lab `convert` returns two trees.

# %% [markdown]
# ## Break it
#
# A model with two heads of one shape is saved by position, as most things are. `mean` and `log_var` give what their names
# say. Later a reader finds `scale` a better name than `log_var`, and renames it everywhere. Only the old file does not know.

# %%
saved = stored({"mean": jnp.full(2, 7.0), "log_var": jnp.full(2, -3.0)})
new_template = {"mean": jnp.zeros(2), "scale": jnp.zeros(2)}
outcomes = ["it raises", "7.0, as saved", "-3.0, that of the other head"]
guess = predict("03-B1", "The old file, loaded into the new names. What is in mean?", outcomes)

# %%
back = loaded(saved, new_template)
print({name: leaf.tolist() for name, leaf in back.items()})
guess.reveal({7.0: outcomes[1], -3.0: outcomes[2]}[float(back["mean"][0])])

# %% [markdown]
# 1. A dict is flattened by sorted key: `log_var`, then `mean`.
# 2. The new name sorts to the other side: `mean`, then `scale`.
# 3. The file has no names, and both shapes fit. The two heads changed places, in silence.
#
# A class does the same when its fields are reordered.

# %% [markdown]
# ## Repair it
#
# Store what is to be compared. A file of named arrays has a path for each leaf, with shape and dtype; and beside them an
# **answer**: what the model gave on fixed rows when it was saved.


# %%
def named(tree):
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}


def save(file, tree, rows, answer):
    np.savez(file, rows=rows, answer=answer, **{"leaf " + path: leaf for path, leaf in named(tree).items()})


# %%
def load(file, like, forward):
    entries = dict(np.load(io.BytesIO(file.getvalue())))
    rows, answer = entries.pop("rows"), entries.pop("answer")
    leaves = {key.removeprefix("leaf "): jnp.asarray(leaf) for key, leaf in entries.items()}
    wanted = named(like)
    if odd := leaves.keys() ^ wanted.keys():
        raise ValueError(f"paths differ: {', '.join(sorted(odd))}")
    for path, leaf in wanted.items():
        if contract(leaves[path]) != contract(leaf):
            raise ValueError(f"{path} is {contract(leaves[path])}, not {contract(leaf)}")
    tree = jax.tree.map_with_path(lambda path, _: leaves[jax.tree_util.keystr(path)], like)
    if not np.allclose(forward(tree, rows), answer, rtol=1e-3, atol=1e-3):
        raise ValueError("the answer is another one")
    return tree


# %% [markdown]
# It has to refuse every fault of this lesson. A check that has not failed once proves nothing, so each is planted: three
# templates that do not fit a good file, and a file that holds the wrong numbers beside the right answer.


# %%
def attempt(like=template, forward=scores, tree=converted, answer=checkpoint.scores):
    save(file := io.BytesIO(), tree, pixels[:8], answer)
    try:
        return "loaded" if contract(load(file, like, forward)) == contract(converted) else "?"
    except ValueError as error:
        return f"refused: {error}"


# %%
def with_bias(leaf):
    """The template with another bias in its norm."""
    return {**template, "norm": {**template["norm"], "bias": leaf}}


other_name = {**template, "head": {"weight": template["head"]["weight"], "b": jnp.zeros(10)}}

# %%
print("the right one:", attempt())
print("renamed:      ", attempt(other_name))
print("scalar leaf:  ", attempt(with_bias(jnp.zeros(()))))
print("dtype:        ", attempt(with_bias(jnp.zeros(16, "bfloat16"))))
print("transposed:   ", attempt(tree=moved))

# %% [markdown]
# Paths, shapes, dtypes, an answer: each line was refused by another of the four. Checkpoint libraries such as Orbax and
# safetensors store names, shapes and dtypes. The answer is yours to add, and it takes two lines.

# %% [markdown]
# ## In the wild
#
# **Read a real converter** (10 minutes): `rename_key_and_reshape_tensor` and the function below it in the
# [PyTorch-to-Flax part of transformers](https://github.com/huggingface/transformers/blob/f35dfe94876c55679a38a92c03bba15f1ff2ba3b/src/transformers/modeling_flax_pytorch_utils.py).
#
# 1. Does it transpose by shape or by meaning, and how does it know the meaning?
# 2. Which of paths, shapes, dtypes and answer does it compare?
# 3. What happens with an entry of the checkpoint that the Flax model does not have?
# 4. Where would a wrongly transposed square matrix be noticed?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. By meaning: a `weight` whose Flax name is `kernel` is transposed, with four axes as a convolution; one that is a
#    `scale` or an `embedding` there is left as it is.
# 2. Shapes, for paths that both have. Not dtypes, and no answer.
# 3. It is added to the tree as it is, so that a warning can be given later. A missing one does not show here at all.
# 4. Nowhere in this file. Forward parity is left to tests elsewhere.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these was reported from somebody's own work, and you have run it above.
#
# | report | what was seen | section |
# |---|---|---|
# | [jax#2348](https://github.com/jax-ml/jax/issues/2348) | `None` is no leaf, and disappears from a list of leaves | None, empty, order, tuple |
# | [jax#4085](https://github.com/jax-ml/jax/issues/4085) | the keys of a dict come back sorted (traces counted in lesson 05) | None, empty, order, tuple |
# | [pytorch#16045](https://github.com/pytorch/pytorch/issues/16045) | (n, 1) minus (n,) is an (n, n) table | The same name, another shape |
# | [flax#853](https://github.com/google/flax/issues/853) | `jit` does not take my model object | Your own classes |
# | [jax#28418](https://github.com/jax-ml/jax/issues/28418) | a changed attribute is not seen (run in lesson 01) | Data and metadata |
# | [equinox#105](https://github.com/patrick-kidger/equinox/issues/105) | `optim.init(model)` meets a function | What trains and what does not |
# | [equinox#590](https://github.com/patrick-kidger/equinox/issues/590) | `MultiSteps` fails where `adamw` works | What trains and what does not |
# | [equinox#574](https://github.com/patrick-kidger/equinox/issues/574) | reshaped weights fit, and the outputs differ | Weights from PyTorch |

# %% [markdown]
# ## Recap
#
# - A tree is a structure and leaves; a path names each leaf. Counts compare neither.
# - `tree.map` compares structures. Shapes and dtypes of leaves are yours to compare, and a broadcast is silent.
# - `None` and an empty dict are structure; the leaves of a dict come by sorted key.
# - Register a class: arrays are data, what decides the program is metadata. No checks in its constructor.
# - Filter the model wherever an optimizer takes parameters.
# - Files of leaves go by position: store paths, shapes, dtypes, and an answer.
# - Transpose by meaning, and prove it by forward parity.

# %% [markdown]
# ## Lab
#
# [Lab 03](../../labs/lab03_pytrees.ipynb) is about the four places where a tree goes wrong in silence: an update that does
# not fit, an average that pairs the wrong leaves, a class that hides its arrays, and this checkpoint. You write the
# comparison that names the path. About 35 minutes.
