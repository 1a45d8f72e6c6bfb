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
# # 04 · Derive, do not rewrite
#
# A gradient, a batch, a curvature: in JAX none of them is code that you write. You write the loss of **one** row and derive
# the rest with `grad` and `vmap`. After this lesson you can choose the order in which you derive, and say what it costs.
#
# About 50 minutes. You need lessons 01 to 03.

# %% [markdown]
# ## Question
#
# Two people want the gradient of the mean loss of a batch:
#
# ```python
# jax.grad(lambda params: jnp.mean(losses(params, x, y)))(params)      # the gradient of the mean
# jax.tree.map(lambda g: g.mean(axis=0), gradients(params, x, y))      # the mean of the gradients
# ```
#
# Both get the same numbers. The second pays more for them, often much more. Why would anybody ever pay?

# %%
from textwrap import shorten

import jax
import jax.numpy as jnp
import numpy as np

from traceonce import chart, plan, predict, watch

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])
zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}
exact = {"w": jnp.array([2.0, -1.0]), "b": jnp.zeros(())}


# %%
def row_loss(params, row, target):
    """The squared error of one row: row (d,), target ()."""
    return (row @ params["w"] + params["b"] - target) ** 2


def rounded(tree, digits=3):
    return jax.tree.map(lambda leaf: (np.asarray(leaf, "float64").round(digits) + 0.0).tolist(), tree)


def said(error):
    """What kind of error it is, and the beginning of its first sentence."""
    return shorten(f"{type(error).__name__}: {str(error).splitlines()[0].split('. ')[0]}", 92, placeholder=" ...")


# %% [markdown]
# ## Before you run
#
# Take a pencil. The last row is `[2, 1]` with target 3. At zero parameters its error is −3. What is the derivative of the
# squared error with respect to the *first* weight?

# %%
question = "The gradient of row_loss at zero for row [2, 1] and target 3, first weight?"
guess = predict("04-X2", question, ["-3.0", "-6.0", "-12.0"])

# %% [markdown]
# ## One scalar at a time

# %% claims=["X2"]
gradient = jax.grad(row_loss)(zero, x[3], y[3])
print(rounded(gradient))
guess.reveal(str(float(gradient["w"][0])))

# %% [markdown]
# Twice the error, times the input: 2 · (−3) · 2. `jax.grad` differentiates with respect to the first argument and returns its
# structure. In PyTorch you would call `.backward()` on a number; here too the function has to return **one number**. What
# about four?


# %%
def losses(params, x, y):
    """The loss of each row: shape (n,)."""
    return (x @ params["w"] + params["b"] - y) ** 2


def loss_of_one_row(params):
    return losses(params, x[:1], y[:1])  # shape (1,): one number?


# %%
question = "grad of a loss of shape (4,), and of a loss of shape (1,): which of them work?"
guess = predict("04-X1", question, ["both", "shape (1,)", "neither"])

# %% claims=["X1"]
works = []
for shape, loss in {"(4,)": lambda params: losses(params, x, y), "(1,)": loss_of_one_row}.items():
    try:
        jax.grad(loss)(zero)
        works.append(shape)
    except TypeError as error:
        print(shape, said(error))
guess.reveal(" ".join(works) or "neither")

# %% [markdown]
# A scalar has shape `()`. An array with one entry is still an array, and people meet that with networks whose last layer has
# one unit ([2022](https://github.com/patrick-kidger/equinox/issues/213),
# [2025](https://github.com/jax-ml/jax/issues/28110)). Say which scalar you mean: `[0]`, `.sum()`, `.mean()`.

# %% claims=["X1"]
scalars = {
    "first": lambda params: losses(params, x, y)[0],
    "sum": lambda params: losses(params, x, y).sum(),
    "mean": lambda params: losses(params, x, y).mean(),
}
for name, loss in scalars.items():
    print(f"{name:5}", rounded(jax.grad(loss)(zero)))

# %% [markdown]
# The mean is the one you train with. Now the sibling of that error, which raises nothing; you met it in lesson 03. A model with
# one output unit returns predictions of shape `(4, 1)`, and somebody takes the mean at once. The parameters are the exact ones:
# every prediction equals its target.


# %%
def column_loss(params):
    predictions = x @ params["w"][:, None] + params["b"]  # shape (4, 1)
    return jnp.mean((predictions - y) ** 2)


guess = predict("04-D07", "column_loss(exact)?", ["0.000", "4.375", "an error"])

# %% claims=["X1"]
loss, gradient = jax.value_and_grad(column_loss)(exact)
print("gradient:", rounded(gradient))
guess.reveal(f"{loss:.3f}")

# %% [markdown]
# `(4, 1) - (4,)` is `(4, 4)`: each prediction against each target. The mean is a scalar, `grad` is content, and the training
# pulls all predictions to the average target. PyTorch's loss [warns since 2019](https://github.com/pytorch/pytorch/issues/16045);
# NumPy and JAX say nothing. Compare shapes where the loss is made, or let JAX refuse:

# %% claims=["X1"]
try:
    with jax.numpy_rank_promotion("raise"):
        column_loss(exact)
except ValueError as error:
    print(said(error))

# %% [markdown]
# Best of all, write the loss for one row. There the prediction is `()` and the target is `()`, and nothing can broadcast.

# %% [markdown]
# ## Which axis is the batch
#
# `jax.vmap(f)` is a function that applies `f` along an axis of its arguments. `in_axes` has an entry for each argument:
# `None` for what all rows share, `0` for an axis that is taken apart. `jax.grad(row_loss)` is a function like any other:


# %%
gradients = jax.vmap(jax.grad(row_loss), in_axes=(None, 0, 0))
question = "params['w'] has shape (2,) and x has shape (4, 2). What shape has gradients(zero, x, y)['w']?"
guess = predict("04-X2b", question, ["(2,)", "(4,)", "(4, 2)"])

# %% claims=["X2"]
each = gradients(zero, x, y)
print("w:", rounded(each["w"]))
print("b:", rounded(each["b"]))
guess.reveal(str(each["w"].shape))

# %% [markdown]
# Four gradients, each row's own: every leaf has got a leading axis of 4. The row that you computed by hand is the last one.
# Nobody wrote a batch dimension, and nobody wrote a derivative. Now the claim of the opening question, at two points:


# %%
def mse(params, x, y):
    return jnp.mean(jax.vmap(row_loss, in_axes=(None, 0, 0))(params, x, y))


# %% claims=["X2"]
for params in (zero, {"w": jnp.array([0.5, 3.0]), "b": jnp.array(-1.0)}):
    averaged = rounded(jax.tree.map(lambda g: g.mean(axis=0), gradients(params, x, y)))
    of_the_mean = rounded(jax.grad(mse)(params, x, y))
    print(averaged, of_the_mean)
    assert averaged == of_the_mean

# %% [markdown]
# A derivative is linear, so it changes places with a mean. That is the whole mathematics of this lesson; the rest is about
# what *else* changes when the two change places.

# %% [markdown]
# ### What a wrong axis says
#
# Seven ways to get `in_axes` wrong. JAX knows sizes, and not meanings. Which of them does it notice?

# %%
squares = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 5.0])  # as many rows as features
attempts = {
    "(None, 1, 0)": ((None, 1, 0), zero, x, y),
    "(None, 2, 0)": ((None, 2, 0), zero, x, y),
    "(None, 0, None)": ((None, 0, None), zero, x, y),
    "(None, 0), three arguments": ((None, 0), zero, x, y),
    "(0, 0, 0), shared params": ((0, 0, 0), zero, x, y),
    "(None, None, None)": ((None, None, None), zero, x, y),
    "(None, 1, 0), square x": ((None, 1, 0), exact, *squares),
}
guess = predict("04-X3", "How many of the seven raise?", [5, 6, 7])

# %% claims=["X3"]
raised = 0
for name, (axes, *args) in attempts.items():
    try:
        print(f"{name:27} -> {rounded(jax.vmap(jax.grad(row_loss), in_axes=axes)(*args)['w'])}")
    except (TypeError, ValueError) as error:
        raised += 1
        print(f"{name:27} {said(error)}")
guess.reveal(raised)

# %% [markdown]
# One by one: *sizes* that do not agree, an axis that is not there, a loss that is no scalar because each row
# met all four targets, arguments that were not counted, parameters that have no batch axis. The first message was
# [worse in 2019](https://github.com/jax-ml/jax/issues/705).
#
# The last one is silent. With as many rows as features it reads columns as rows. **Try your shapes with sizes that are all
# different.**

# %% claims=["X3"]
right, wrong = (jax.vmap(row_loss, in_axes=(None, axis, 0))(exact, *squares) for axis in (0, 1))
print("losses of the rows:", right.tolist(), "  read as columns:", wrong.tolist())

# %% [markdown]
# Two more rules. An entry of `in_axes` may be a tree, for arguments that are trees: here four models share one bias. And an
# argument passed **by keyword** is always taken along axis 0, whatever `in_axes` says
# ([2024](https://github.com/jax-ml/jax/issues/20914)).

# %% claims=["X3"]
four_models = {"w": jnp.stack([zero["w"], exact["w"], -exact["w"], zero["w"]]), "b": jnp.zeros(())}
model_axes = {"w": 0, "b": None}
print("each model on all rows:", rounded(jax.vmap(mse, in_axes=(model_axes, None, None))(four_models, x, y)))
print("target by keyword:     ", rounded(jax.vmap(row_loss, in_axes=(None, 0))(zero, x, target=y)))

# %% [markdown]
# ## The order decides what exists
#
# Everything so far was derived from `row_loss`. Here is the map: to the right is `vmap` and then the mean, down is `grad`.


# %%
from html import escape

BOXES = {  # column, row: what it is, what it returns
    (0, 0): ("row_loss", "()"),
    (1, 0): ("vmap(row_loss)", "(n,)"),
    (2, 0): ("mean(vmap(row_loss))", "()"),
    (0, 1): ("grad(row_loss)", "params"),
    (1, 1): ("vmap(grad(row_loss))", "n x params"),
    (2, 1): ("one gradient", "params"),
}
ARROWS = {  # from, to: what is done; the missing one is in brackets
    ((0, 0), (1, 0)): "vmap",
    ((1, 0), (2, 0)): "mean",
    ((0, 1), (1, 1)): "vmap",
    ((1, 1), (2, 1)): "mean",
    ((0, 0), (0, 1)): "grad",
    ((1, 0), (1, 1)): "(no grad)",
    ((2, 0), (2, 1)): "grad",
}


# %%
class Square:
    """The compositions of grad, vmap and mean: as a picture, and as text."""

    def __repr__(self):
        name = lambda place: f"{BOXES[place][0]} {BOXES[place][1]}"
        return "\n".join(f"{name(a):31} {does:>9} -> {name(b)}" for (a, b), does in ARROWS.items())

    def _repr_mimebundle_(self, **_):
        return {"text/plain": repr(self), "image/svg+xml": picture(self)}


# %%
def box(column, row, name, gives):
    left, top = 10 + 270 * column, 10 + 130 * row
    middle = f'<text x="{left + 85}" y="{{}}">{{}}</text>'.format
    rectangle = f'<rect x="{left}" y="{top}" width="170" height="56" rx="6"/>'
    return rectangle + middle(top + 23, name) + middle(top + 44, gives)


def arrow(start, end, does):
    (column, row), across = start, start[1] == end[1]
    x1, y1 = (180 + 270 * column, 38 + 130 * row) if across else (95 + 270 * column, 66)
    x2, y2, tip = (x1 + 100, y1, "l-8 -5v10z") if across else (x1, 140, "l-5 -8h10z")
    line = f'<path d="M{x1} {y1}L{x2} {y2}" fill="none"'
    head = f'/><path d="M{x2} {y2}{tip}" fill="#1f2328"/>'
    label = f'<text x="{x1 + 50}" y="{y1 - 8 if across else 104}">{does}</text>'
    return line + (' stroke-dasharray="3 5"/>' if "no" in does else head) + label


# %%
def picture(square):
    shapes = [box(*place, *said) for place, said in BOXES.items()]
    shapes += [arrow(start, end, said) for (start, end), said in ARROWS.items()]
    body = "".join(shapes).replace("<text", '<text text-anchor="middle" fill="#1f2328" stroke="none"')
    about = f"<title>The order of composition</title><desc>{escape(repr(square))}</desc>"
    style = 'fill="#ffffff" stroke="#1f2328" font-family="monospace" font-size="13"'
    ground = '<rect width="730" height="206" stroke="none"/>'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 730 206" width="730" height="206">'
        f"{about}<g {style}>{ground}{body}</g></svg>"
    )


Square()

# %% [markdown]
# Two ways lead from `row_loss` to one gradient. The upper one reduces to a scalar *before* it differentiates. The lower one
# differentiates first, so that it passes through a box with `n` copies of the parameters. The arrow in the middle is the
# error of a moment ago.
#
# Does the compiler see that both ways end in the same place?

# %% [markdown]
# Real digits make the parameters large enough to tell: 64 pixels, ten classes, 650 parameters, and so 2600 bytes for a
# gradient. `plan` asks the compiler how many bytes a program will need, without running it. The arrays are put on the CPU, so
# that the figures are the CPU's wherever you run this.

# %%
from traceonce.data import digits

pixels, labels = digits()
cpu = jax.devices("cpu")[0]
blank = jax.device_put({"w": jnp.zeros((64, 10)), "b": jnp.zeros(10)}, cpu)


def digit_loss(params, image, label):
    """Cross-entropy of one digit: image (64,), label ()."""
    scores = image @ params["w"] + params["b"]
    return jax.nn.logsumexp(scores) - scores[label]


def first_digits(n):
    return jax.device_put((pixels[:n], labels[:n]), cpu)


# %%
digit_gradients = jax.vmap(jax.grad(digit_loss), in_axes=(None, 0, 0))


def gradient_of_mean(params, x, y):
    return jax.grad(lambda params: jnp.mean(jax.vmap(digit_loss, in_axes=(None, 0, 0))(params, x, y)))(params)


def mean_of_gradients(params, x, y):
    return jax.tree.map(lambda g: g.mean(axis=0), digit_gradients(params, x, y))


# %%
question = "1024 digits, the same 650 numbers: how many times the temporaries does the lower way plan?"
guess = predict("04-X4", question, ["about 1", "2 to 10", "over 10"])

# %% claims=["X4"]
ways = (gradient_of_mean, mean_of_gradients)
plans = {(way, n): plan(way, blank, *first_digits(n)) for way in ways for n in (256, 1024)}
upper, lower = (plans[way, 1024] for way in ways)
print("same outputs:", upper.outputs == lower.outputs, " same arguments:", upper.arguments == lower.arguments)
ratio = lower.temporaries / upper.temporaries
guess.reveal("over 10" if ratio > 10 else "2 to 10" if ratio > 2 else "about 1")

# %% [markdown]
# It does not see it: all `n` gradients are written down before they are averaged. Both bars grow with the batch, because the
# upper way also keeps something for each row. It is a few numbers for each of ten scores, and not a gradient of 650.

# %% claims=["X4"]
from traceonce.show import Arm, Bars

arms = [Arm(f"{way.__name__}, {n} rows", (plans[way, n].temporaries,)) for way in ways for n in (256, 1024)]
chart(Bars("Planned temporaries by order and batch", ("temporaries",), tuple(arms)))
for way in ways:
    per_row = [plans[way, n].temporaries / n for n in (256, 1024)]
    print(f"{way.__name__:17} per row: over 2600 bytes {min(per_row) > 2600}, under 260 bytes {max(per_row) < 260}")

# %% [markdown]
# These are figures of the CPU's compiler; another backend may fuse more. Measure yours: leave out the `device_put`.
# What does not depend on the machine is the *artifact*. Stop before the mean, and the lower way hands you something that the
# upper one never had: each row's own gradient.

# %% claims=["X4"]
for name, function in {"upper": gradient_of_mean, "lower, before the mean": digit_gradients}.items():
    print(f"{name:23}", jax.tree.map(jnp.shape, jax.eval_shape(function, blank, *first_digits(1024))))

# %% [markdown]
# ### A loop is not a vmap
#
# Before `vmap` people wrote a Python loop over the rows, and it gives the same numbers. But your Python runs while tracing
# (lesson 01). So what does the loop leave behind? A **jaxpr** is what a trace has recorded, one equation for each operation.


# %%
def looped(params, x, y):
    each = [jax.grad(row_loss)(params, row, target) for row, target in zip(x, y, strict=True)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)


def equations(function, n):
    return len(jax.make_jaxpr(function)(zero, jnp.ones((n, 2)), jnp.ones(n)).eqns)


# %%
question = "gradients has as many equations for 4 rows as for 16. How many times as many has looped?"
guess = predict("04-X4b", question, ["the same", "2 times", "over 3 times"])

# %% claims=["X4"]
for name, function in {"vmap": gradients, "loop": looped}.items():
    few, more, many = (equations(function, n) for n in (4, 8, 16))
    print(f"{name}: 8 rows have {more / few:.0f} times the equations of 4, 16 rows {many / few:.0f} times")
growth = many / few
guess.reveal("over 3 times" if growth > 3 else "2 times" if growth > 1.5 else "the same")

# %% [markdown]
# `vmap` makes each operation wider; the loop makes the *program* longer. Longer programs take longer to trace and to compile,
# and every batch size is another one. Derive the batch, do not write it out.

# %% [markdown]
# ### One more composition
#
# `grad` of `mse` is a function, so it can be differentiated again. `jax.jvp` gives the change of its output along a direction:
# a **Hessian-vector product**, curvature along one direction, for the price of a few gradients. The matrix itself, with as
# many columns as parameters, is never made.


# %%
def hessian_times(params, direction):
    gradient = lambda params: jax.grad(mse)(params, x, y)
    return jax.jvp(gradient, (params,), (direction,))[1]


# %%
first_weight = {"w": jnp.array([1.0, 0.0]), "b": jnp.zeros(())}
question = "The curvature along w[0] is 2 * mean(x[:, 0]**2), with x[:, 0] = 1, 0, 1, 2?"
guess = predict("04-X8", question, ["1.5", "3.0", "6.0"])

# %% claims=["X8"]
product = hessian_times(zero, first_weight)
print("product:", rounded(product))
print("column of the Hessian:", rounded(jax.hessian(mse)(zero, x, y)["w"]["w"][:, 0]))
guess.reveal(str(float(product["w"][0])))

# %% [markdown]
# ## A step, and what it threads
#
# `jax.value_and_grad` gives the loss with the gradient, for one forward pass. Eighty steps at 0.05 on the four rows. The
# eightieth step reports a loss of 0.008064.


# %%
@jax.jit
def step(params, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), loss


question = "Is 0.008064 the loss of the parameters that this step returned?"
guess = predict("04-X5", question, ["yes", "no, theirs is lower", "no, theirs is higher"])

# %% claims=["X5"]
params = zero
for _ in range(80):
    before, (params, reported) = params, step(params, 0.05)
after = float(mse(params, x, y))
print(f"reported {reported:.6f}, of the parameters before {mse(before, x, y):.6f}, after {after:.6f}")
print(rounded(params), rounded(losses(params, x, y), 6))
guess.reveal("no, theirs is lower" if after < reported else "yes" if after == reported else "no, theirs is higher")

# %% [markdown]
# The loss was computed on the way to the gradient, so it belongs to the parameters that came *in*. Log it under that step, and
# evaluate again if you save the parameters by it. The four losses say more than their mean: the second row is fitted worst.

# %% [markdown]
# Now a step as people have it: momentum 0.9, and dropout on the inputs, kept with probability 0.75 and divided by 0.75. The
# mask comes out beside the loss: with `has_aux=True` the function returns a pair, the first part is differentiated and the
# second is handed through.


# %%
def noisy_loss(params, key, x, y):
    mask = jax.random.bernoulli(key, 0.75, x.shape)
    return mse(params, jnp.where(mask, x / 0.75, 0.0), y), mask


@jax.jit
def momentum_step(state, x, y):
    key, mask_key = jax.random.split(state["key"])
    (loss, mask), grads = jax.value_and_grad(noisy_loss, has_aux=True)(state["params"], mask_key, x, y)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - 0.05 * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "key": key}, {"loss": loss, "mask": mask}


# %%
question = "momentum_step is called twice with the same state. What differs?"
guess = predict("04-X6", question, ["nothing", "the mask", "the mask and the parameters"])

# %% claims=["X6", "X8"]
start = {"params": zero, "velocity": zero, "key": jax.random.key(7, impl="threefry2x32")}
once, metrics = momentum_step(start, x, y)
again, repeated = momentum_step(start, x, y)
words = lambda state: jax.random.key_data(state["key"]).tolist()
print("mask:", metrics["mask"].astype(int).tolist())
same_params = rounded(once["params"], 9) == rounded(again["params"], 9)
same_mask = bool((metrics["mask"] == repeated["mask"]).all())
print("key moved on:", words(once) != words(start), " and to the same place:", words(once) == words(again))
guess.reveal("nothing" if same_params and same_mask else "the mask" if same_params else "the mask and the parameters")

# %% [markdown]
# The same state gives the same step, noise and all. So whoever has the state can replay the run. What if a loop carries on
# only a part of it? Somebody takes the new parameters and the new key, and forgets the velocity.

# %%
question = "The second step gets the new params and key and the old velocity. What happens?"
guess = predict("04-X6b", question, ["it raises", "the same step", "another step, in silence"])

# %% claims=["X6"]
twice, second = momentum_step(once, x, y)
forgot, _ = momentum_step(once | {"velocity": start["velocity"]}, x, y)
print("second mask:", second["mask"].astype(int).tolist())
print("threaded:", rounded(twice["params"]), "  forgotten:", rounded(forgot["params"]))
same = rounded(twice["params"]) == rounded(forgot["params"])
guess.reveal("the same step" if same else "another step, in silence")

# %% [markdown]
# Momentum has become plain descent, and the structure was right all along. Hand on **the state that was returned, whole**;
# what is never handed on piece by piece cannot be forgotten piece by piece.

# %% [markdown]
# ## A new term, rung by rung
#
# A real edit: the loss gets a penalty of `0.1 * Σ w²`, over the weights and not over the bias. It is one line. Here are five
# people's lines; one of them is right.

# %%
candidates = {
    "sum(w**2)": lambda p: 0.1 * jnp.sum(p["w"] ** 2),
    "norm(w)**2": lambda p: 0.1 * jnp.linalg.norm(p["w"]) ** 2,
    "sum(frozen w * w)": lambda p: 0.1 * jnp.sum(jax.lax.stop_gradient(p["w"]) * p["w"]),
    "if any: sum(w**2)": lambda p: 0.1 * jnp.sum(p["w"] ** 2) if p["w"].any() else jnp.zeros(()),
    "with the bias": lambda p: 0.1 * (jnp.sum(p["w"] ** 2) + p["b"] ** 2),
}

# %%
values = [f"{penalty(exact):.2f}" for penalty in candidates.values()]
print("at w = [2, -1]:", values, "  at zero:", [float(penalty(zero)) for penalty in candidates.values()])

# %% [markdown]
# All five have the right value in both places. So a value is not enough. An **evidence ladder** asks one question after the
# other, each cheap and each able to fail:
#
# 1. at zero, value and gradient are zero;
# 2. at a known point, value and gradient are those of the pencil: 0.5 and `[0.4, -0.2]`;
# 3. the gradient agrees with **finite differences** of the value;
# 4. jitted and called twice, it costs one trace.


# %%
from jax.flatten_util import ravel_pytree


def differences(function, params, h=0.01):
    """The gradient by central differences, one entry after the other."""
    flat, restore = ravel_pytree(params)
    at = lambda i, by: float(function(restore(flat.at[i].add(by))))
    return restore(jnp.array([(at(i, h) - at(i, -h)) / (2 * h) for i in range(flat.size)]))


# %%
def close(tree, other):
    return jax.tree.all(jax.tree.map(lambda a, b: bool(np.allclose(a, b, atol=1e-3)), tree, other))


def traces_of_two_calls(function):
    counted = watch(jax.jit(lambda params: function(params)))
    try:
        for params in (exact, zero):
            counted(params)
    except jax.errors.ConcretizationTypeError:
        return "cannot be traced"
    return counted.counts.traces


# %%
def ladder(penalty):
    known = {"w": jnp.array([0.4, -0.2]), "b": jnp.zeros(())}
    grad = jax.grad(penalty)
    return {
        "zero": float(penalty(zero)) == 0 and close(grad(zero), zero),
        "known": abs(float(penalty(exact)) - 0.5) < 1e-6 and close(grad(exact), known),
        "differences": close(grad(exact), differences(penalty, exact)),
        "one trace": traces_of_two_calls(penalty) == 1,
    }


# %%
question = "The ladder is told nothing about the bias. How many of the four wrong lines fail it?"
guess = predict("04-X7", question, [1, 2, 3, 4])

# %% claims=["X7"]
evidence = {name: ladder(penalty) for name, penalty in candidates.items()}
for name, rungs in evidence.items():
    print(f"{name:18}", "  ".join(f"{rung} {'yes' if held else 'NO'}" for rung, held in rungs.items()))
guess.reveal(sum(not all(rungs.values()) for rungs in evidence.values()))

# %% [markdown]
# Each rung caught another fault. `norm(w)**2` has a NaN gradient at zero, where every run starts
# ([2020](https://github.com/jax-ml/jax/issues/4177), [2024](https://github.com/jax-ml/jax/issues/21723)): the root inside has
# no slope there, as in lesson 06. The frozen one has half the gradient. The branch works in every test without `jit`.
#
# And the bias slipped through. Why?

# %% [markdown]
# At both points the bias is 0, so a term `b²` has nothing to show. Finite differences cannot help: they compare the gradient
# with the value, and both are wrong together. A rung needs **a point where the fault can show**.

# %% claims=["X7"]
tilted = {"w": exact["w"], "b": jnp.array(3.0)}
for name in ("sum(w**2)", "with the bias"):
    value, gradient = jax.value_and_grad(candidates[name])(tilted)
    agrees = close(gradient, differences(candidates[name], tilted))
    print(f"{name:14} value {value:.2f}, gradient {rounded(gradient)}, agrees with differences: {agrees}")

# %% [markdown]
# The last rungs are about the whole: the objective's gradient has the structure of the parameters, leaf by leaf; the compiled
# step traces once; and training moves where a penalty should move it.


# %% claims=["X7"]
def objective(params):
    return mse(params, x, y) + candidates["sum(w**2)"](params)


@watch
@jax.jit
def penalised_step(params):
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, jax.grad(objective)(params))


pulled = zero
for _ in range(80):
    pulled = penalised_step(pulled)
shapes = lambda tree: jax.tree.map(jnp.shape, tree)
print("structure and shapes kept:", shapes(jax.grad(objective)(zero)) == shapes(zero))
print("traces:", penalised_step.counts.traces, f" objective {objective(pulled):.6f}", rounded(pulled))
print("smaller weights:", bool(jnp.sum(pulled["w"] ** 2) < jnp.sum(params["w"] ** 2)))

# %% [markdown]
# That is the ladder: zero, a known point *with everything switched on*, differences, structure, one trace, and then training.
# A loss curve comes last because it can say so little: four of the five lines would have drawn a pretty one.

# %% [markdown]
# ## Break it
#
# Time to pay for the lower way. One label has a typing error: 300 instead of 3. Somebody knows the cure: clip the gradient, so
# that its norm is at most 2. `norm` is the length over *all* leaves together.

# %%
y_typo = y.at[3].set(300.0)


def norm(tree):
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def clip(tree, limit):
    """The tree, made shorter where its norm is over the limit."""
    scale = jnp.minimum(1.0, limit / norm(tree))
    return jax.tree.map(lambda leaf: scale * leaf, tree)


# %%
def clipped_mean_gradient(params, x, y):
    return clip(jax.grad(mse)(params, x, y), 2.0)


# %%
def train(gradient, targets, steps=200):
    moved = jax.jit(lambda params: jax.tree.map(lambda p, g: p - 0.05 * g, params, gradient(params, x, targets)))
    params = zero
    for _ in range(steps):
        params = moved(params)
    return params


question = "Trained with the typing error and the clipped gradient: the loss on the three good rows?"
guess = predict("04-B1", question, ["under 1", "1 to 10", "over 100"])

# %% claims=["X8"]
ruined = train(clipped_mean_gradient, y_typo)
good_rows = float(mse(ruined, x[:3], y[:3]))
print(rounded(ruined, 1))
guess.reveal("over 100" if good_rows > 100 else "1 to 10" if good_rows > 1 else "under 1")

# %% [markdown]
# The steps were short, all two hundred of them, and all went the same wrong way. The mean had been taken **before** the clipping:
# in it one row had outvoted three, and shortening a sum does not change its direction.

# %% [markdown]
# ## Repair it
#
# Clip each row's gradient, and average then. No row can pull with more than its limit. For that you need each row's own
# gradient, the box in the middle of the lower way.


# %%
def mean_of_clipped(params, x, y, limit=2.0):
    each = gradients(params, x, y)
    return jax.tree.map(lambda g: g.mean(axis=0), jax.vmap(clip, in_axes=(0, None))(each, limit))


question = "By how much does the typing error change mean_of_clipped at zero?"
guess = predict("04-B2", question, ["not at all", "about twofold", "about a hundredfold"])

# %% claims=["X8"]
honest, typo = (mean_of_clipped(zero, x, targets) for targets in (y, y_typo))
print("labels:", rounded(honest), "  with the error:", rounded(typo))
factor = float(norm(typo) / norm(honest))
guess.reveal("not at all" if abs(factor - 1) < 0.01 else "about twofold" if factor < 10 else "about a hundredfold")

# %% claims=["X8"]
kept = train(mean_of_clipped, y_typo)
print(rounded(kept), " loss on the good rows under 1:", bool(mse(kept, x[:3], y[:3]) < 1))
print("norms of the rows at zero:", rounded(jax.vmap(norm)(gradients(zero, x, y_typo)), 1))

# %% [markdown]
# That answers the opening question. The two ways give the same *mean*. The lower one pays for what happens **between** `grad`
# and the mean: clipping, a norm for each row, privacy, a look at which row pulls. Whatever is not linear has to happen there.

# %% [markdown]
# ### The row that pulls nothing
#
# A row that is fitted exactly has a gradient of 0. Here are two ways to write `clip`; both are right everywhere else. The
# second first makes a unit vector, then gives it a length.


# %%
def clip_by_unit(tree, limit):
    length = norm(tree)
    return jax.tree.map(lambda leaf: leaf / length * jnp.minimum(length, limit), tree)


# %%
question = "One of the four rows has gradient 0. What is the mean, clipped by clip_by_unit?"
guess = predict("04-B3", question, ["finite", "nan"])

# %% claims=["X8"]
y_fitted = y.at[0].set(0.0)  # at zero parameters, row 0 is fitted exactly
outcome = {}
for function in (clip, clip_by_unit):
    each = jax.vmap(function, in_axes=(0, None))(gradients(zero, x, y_fitted), 2.0)
    outcome[function] = rounded(each["w"].mean(axis=0))
    bad_rows = int(jnp.isnan(each["b"]).sum())
    print(f"{function.__name__:13} mean of w: {outcome[function]}, rows that are NaN: {bad_rows}")
guess.reveal("nan" if np.isnan(outcome[clip_by_unit]).any() else "finite")

# %% [markdown]
# 0 / 0 in one row, and the mean is gone. `clip` survives: 2 / 0 is infinite, and the smaller of that and 1 is 1. With a limit
# of 0 it would fail as well, as [Optax's does](https://github.com/google-deepmind/optax/pull/1752). Clip with a **factor that
# is never above 1**, and test the row that pulls nothing.

# %% [markdown]
# ### A sum needs no list
#
# Now on the digits: 1024 gradients, clipped, averaged. Three ways. `lax.map` with a `batch_size` takes 64 rows at a time; so does
# the `scan`, which *adds up* as it goes.


# %%
def clipped_digit(params, image, label):
    return clip(jax.grad(digit_loss)(params, image, label), 1.0)


def all_at_once(params, x, y):
    each = jax.vmap(clipped_digit, in_axes=(None, 0, 0))(params, x, y)
    return jax.tree.map(lambda g: g.mean(axis=0), each)


def mapped_in_chunks(params, x, y):
    each = jax.lax.map(lambda pair: clipped_digit(params, *pair), (x, y), batch_size=64)
    return jax.tree.map(lambda g: g.mean(axis=0), each)


# %%
def summed_in_chunks(params, x, y):
    def add_chunk(total, chunk):
        each = jax.vmap(clipped_digit, in_axes=(None, 0, 0))(params, *chunk)
        return jax.tree.map(lambda t, g: t + g.sum(axis=0), total, each), None

    chunks = x.reshape(-1, 64, 64), y.reshape(-1, 64)
    total, _ = jax.lax.scan(add_chunk, jax.tree.map(jnp.zeros_like, params), chunks)
    return jax.tree.map(lambda t: t / len(x), total)


# %%
three = (all_at_once, mapped_in_chunks, summed_in_chunks)
question = "How many of the three plan less than half of 1024 gradients?"
guess = predict("04-X8c", question, [0, 1, 2, 3])

# %% claims=["X4", "X8"]
clip_plans = {way.__name__: plan(way, blank, *first_digits(1024)) for way in three}
chart(plan.compare(**clip_plans), numbers=False)
small = {name: one.temporaries < 1024 * 2600 / 2 for name, one in clip_plans.items()}
print(small)
results = [jax.jit(way)(blank, *first_digits(1024)) for way in three]
print("same answer:", all(close(result, results[0]) for result in results))
guess.reveal(sum(small.values()))

# %% [markdown]
# `lax.map` worked in chunks and then *stacked* its results: all 1024 gradients, waiting for their mean. Memory that goes up with
# `vmap` is [an old complaint](https://github.com/jax-ml/jax/issues/11319), and chunks alone are half a cure. What is wanted is a
# sum, so **carry the sum**. (Dividing comes last, by the number of rows, not of chunks.)

# %% [markdown]
# What `plan` says of the `scan` does not grow with the batch any more. That is the test to write: same figure for 512 and for 1024
# rows.

# %% claims=["X4", "X8"]
half = plan(summed_in_chunks, blank, *first_digits(512))
whole = clip_plans["summed_in_chunks"]
print("same temporaries for 512 and 1024 rows:", half.temporaries == whole.temporaries)
assert half.temporaries == whole.temporaries

# %% [markdown]
# ## In the wild
#
# Each row's gradient is also a way to look at *data*. Of 1024 digits, five get a wrong label. A model is trained on all of them
# for 100 steps; then each digit is asked how hard it pulls.

# %%
planted = [7, 70, 170, 270, 370]
targets = labels[:1024].copy()
targets[planted] = (targets[planted] + 1) % 10
train_step = jax.jit(lambda p, x, y: jax.tree.map(lambda a, g: a - 0.5 * g, p, gradient_of_mean(p, x, y)))

params = blank
for _ in range(100):
    params = train_step(params, pixels[:1024], targets)
pull = np.asarray(jax.vmap(norm)(digit_gradients(params, pixels[:1024], targets)))

# %%
question = "How many of the five are among the ten digits that pull hardest?"
guess = predict("04-W1", question, [0, 1, 2, 3, 4, 5])

# %% claims=["X8"]
hardest = np.argsort(-pull)[:10]
print("planted among the ten:", sorted(set(hardest.tolist()) & set(planted)))
guess.reveal(len(set(hardest.tolist()) & set(planted)))

# %% [markdown]
# Ten digits of 1024 to look at, and four of the five are there; the labels of the other six are the source's. A mean would
# never have told you. With a library the derivation is the same one. An Equinox model has functions among its leaves (lesson 03), so its
# gradient is filtered:

# %% claims=["X8"]
import equinox as eqx

model = eqx.nn.MLP(2, "scalar", 4, 1, key=jax.random.key(0))
model_loss = lambda model, row, target: (model(row) - target) ** 2
each = eqx.filter_vmap(eqx.filter_grad(model_loss), in_axes=(None, 0, 0))(model, x, y)
print([leaf.shape for leaf in jax.tree.leaves(eqx.filter(each, eqx.is_array))])

# %% [markdown]
# **Read a real loop** (10 minutes). JAX's own example of differentially private training clips each example's gradient, at
# [this commit](https://github.com/jax-ml/jax/blob/085f5173589959ab088640d5cc461ce7cfe6bf87/examples/differentially_private_sgd.py).
# Read `private_grad` and `private_update`.
#
# 1. Which way through the square is it? What has the shape `n x params`?
# 2. What does `divisor` do with a gradient of 0?
# 3. Sum, noise, division: in which order? What would change if the division came before the noise?
# 4. `microbatches` raises `NotImplementedError`. What would you write in its place?
# 5. Who owns `rng`, and how many leaves draw from it?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. The lower one: `vmap` of a clipped `grad`, then a sum. Each leaf of `px_clipped_grad_fn(batch)`.
# 2. It is at least 1, so 0 stays 0.
# 3. Sum, noise, division. The noise is meant for the sum: after the division it would be `n` times too much
#    ([found in 2026](https://github.com/google-deepmind/jax_privacy/issues/383) in an example).
# 4. A scan that adds up clipped chunks. Averaging a chunk *before* clipping is
#    [asked for](https://github.com/meta-pytorch/opacus/issues/25), and it is another algorithm.
# 5. One key for all leaves: the fault that lesson 02 tells of.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these is a cell above, or in the example that you have read.
#
# | report | what was seen | section |
# |---|---|---|
# | [equinox#213](https://github.com/patrick-kidger/equinox/issues/213), [jax#28110](https://github.com/jax-ml/jax/issues/28110) | `grad` of a shape `(1,)` | One scalar at a time |
# | [pytorch#16045](https://github.com/pytorch/pytorch/issues/16045) | `(N, 1)` minus `(N,)`: a loss that does not fall | One scalar at a time |
# | [jax#705](https://github.com/jax-ml/jax/issues/705), [jax#20914](https://github.com/jax-ml/jax/issues/20914) | a wrong `in_axes`; arguments by keyword | Which axis is the batch |
# | [jax#11319](https://github.com/jax-ml/jax/issues/11319) | `vmap` holds the whole batch's intermediates | The order; Repair it |
# | [jax#4177](https://github.com/jax-ml/jax/issues/4177), [jax#21723](https://github.com/jax-ml/jax/issues/21723) | a squared norm with a NaN gradient at zero | A new term |
# | [optax#1752](https://github.com/google-deepmind/optax/pull/1752) | clipping divides 0 by 0 | Repair it |
# | [jax_privacy#383](https://github.com/google-deepmind/jax_privacy/issues/383), [opacus#25](https://github.com/meta-pytorch/opacus/issues/25) | scaled, or averaged, in the wrong place | In the wild |
# | [equinox#105](https://github.com/patrick-kidger/equinox/issues/105), [equinox#590](https://github.com/patrick-kidger/equinox/issues/590) | functions among the leaves of a model (run in lesson 03) | In the wild |

# %% [markdown]
# ## Recap
#
# - Write the loss of one row; `grad` wants shape `()`.
# - `in_axes` says what is taken apart. A wrong axis raises unless sizes agree by accident.
# - Same average, other artifact: per-row gradients cost `n` times the parameters.
# - Pay for them when something not linear comes before the mean, and carry a sum if a sum is wanted.
# - A step's loss is from before its update; the state comes back whole.
# - A new term climbs the ladder, at points where a fault can show.
# - `vmap` widens a program, a Python loop lengthens it.

# %% [markdown]
# ## Lab
#
# [Lab 04](../../labs/lab04_transformations.ipynb): a training run is ruined by a few wrong labels. You clip each example's
# gradient, first on the four rows, then on real digits within planned bytes; and you prove a penalty by the ladder. About 40
# minutes.
