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
# # 01 · One step is a state transition
#
# A PyTorch training step changes objects that already exist. A JAX step takes the old state and returns the new one.
# After this lesson you can write such a step, and say what becomes of every change that is not returned.
#
# About 50 minutes. You need PyTorch and NumPy, and no JAX.

# %% [markdown]
# ## Question
#
# You have written these lines many times:
#
# ```python
# for x, y in loader:
#     optimizer.zero_grad()
#     loss = loss_fn(model(x), y)
#     loss.backward()
#     optimizer.step()        # returns None
# ```
#
# `optimizer.step()` returns nothing, and yet the model is different afterwards. Where did the change go? And what must
# a step return where arrays cannot be changed?

# %% [markdown]
# The data are four rows, small enough to check by hand; they stay with you until lesson 08. The model is `w·x + b`.
# Its parameters are a plain dict of arrays: there is no module object, and nothing is registered anywhere.

# %%
import jax
import jax.numpy as jnp

from traceonce import chart, predict, watch

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])

zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}
exact = {"w": jnp.array([2.0, -1.0]), "b": jnp.zeros(())}

# %% [markdown]
# Two helpers, for printing only. `rounded` turns a dict or list of arrays into plain numbers. `refused` expects an error
# and prints it in one line: this lesson fails on purpose, several times.

# %%
from contextlib import contextmanager

import numpy as np


def rounded(tree, digits=3):
    return jax.tree.map(lambda leaf: np.asarray(leaf, "float64").round(digits).tolist(), tree)


@contextmanager
def refused(kind):
    try:
        yield
    except kind as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0].split('. ')[0]}")
    else:
        raise AssertionError(f"expected {kind.__name__}, and nothing was raised")


# %% [markdown]
# ## Before you run
#
# Take a pencil. With all parameters zero, every prediction is 0, so the error of a row is its target: 2, −1, 1, 3.
# Square, sum, divide by the number of rows. The next cell asks; choose before you go on. A wrong guess costs nothing.

# %%
question = "What is the mean squared error of the zero parameters on the four rows?"
guess = predict("01-P1", question, ["1.25", "3.75", "15.00"])

# %% [markdown]
# ## The step returns the whole change
#
# First the loss. `jnp` is NumPy's interface on JAX arrays, so it reads like NumPy. Look at its arguments: everything
# that the result depends on comes in through the parentheses. Two results are known by hand, so check both.


# %% claims=["P1"]
def mse(params, x, y):
    predictions = x @ params["w"] + params["b"]
    return jnp.mean((predictions - y) ** 2)


print("zero:", float(mse(zero, x, y)), "  exact:", float(mse(exact, x, y)))
guess.reveal(f"{mse(zero, x, y):.2f}")

# %% [markdown]
# `jax.grad(mse)` is a new function. It takes the same arguments as `mse` and returns the gradient with respect to the
# first one, as a dict with the same keys. `jax.tree.map` then applies `p - lr * g` leaf by leaf and builds a new dict.


# %%
def step(params, x, y, lr):
    grads = jax.grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads)


question = "step(zero, x, y, 0.05) moves the bias to 0.125. What is zero['b'] then?"
guess = predict("01-P2", question, ["0.0", "0.125"])

# %% claims=["P2"]
after = step(zero, x, y, 0.05)
print("returned:", rounded(after))
print("argument:", rounded(zero))
guess.reveal(float(zero["b"]))

# %% [markdown]
# That answers the first half of the question. PyTorch wrote the change into objects that the call
# `optimizer.step()` does not even mention. The JAX step wrote nowhere: **the change is the return value**, and it is
# lost unless you keep it. Training is `params = step(params, x, y, lr)`, again and again.

# %% [markdown]
# A real step has more state than parameters. This one, in PyTorch, has noise on its inputs and momentum:
#
# ```python
# noisy_x = x + 0.1 * torch.randn_like(x)      # moves a global generator
# optimizer.zero_grad()
# loss = ((model(noisy_x) - y) ** 2).mean()
# loss.backward()                              # writes p.grad
# optimizer.step()                             # writes p and the momentum buffers
# print(loss.item())
# ```
#
# Each piece has its place in the JAX step below:
#
# | piece | lives in PyTorch in | enters the JAX step as | leaves it as |
# |---|---|---|---|
# | parameters | `model`, changed by `optimizer.step()` | `state["params"]` | new `params` |
# | gradients | `p.grad`, to be zeroed by hand | – | a value inside the step |
# | optimizer state | `optimizer.state` | `state["momentum"]` | new `momentum` |
# | randomness | a global generator | `state["key"]` | the next `key` |
# | learning rate | `optimizer.param_groups` | argument `lr` | – |
# | metrics | `loss.item()` in mid-loop | – | `metrics["loss"]` |


# %%
def full_step(state, x, y, lr):
    key, noise_key = jax.random.split(state["key"])
    noisy_x = x + 0.1 * jax.random.normal(noise_key, x.shape)
    loss, grads = jax.value_and_grad(mse)(state["params"], noisy_x, y)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], grads)
    params = jax.tree.map(lambda p, m: p - lr * m, state["params"], momentum)
    return {"params": params, "momentum": momentum, "key": key}, {"loss": loss}


# %% [markdown]
# Before you run or edit somebody's step, take its **inventory**. Four questions:
#
# 1. Which state changes, and does all of it come back?
# 2. Which shapes and static values is it made for?
# 3. Who owns the key? (Here: the state. The step splits it, uses one child and returns the other.)
# 4. Which functions are transformed? (Here: `mse`, by `value_and_grad`.)
#
# The next two cells measure the first two.

# %% claims=["P2"]
state = {"params": zero, "momentum": zero, "key": jax.random.key(7)}
new_state, metrics = full_step(state, x, y, 0.05)

assert jax.tree.structure(new_state) == jax.tree.structure(state)
for name in state:
    pairs = zip(jax.tree.leaves(state[name]), jax.tree.leaves(new_state[name]), strict=True)
    print(f"{name:8} changed and returned: {all(bool((old != new).any()) for old, new in pairs)}")

# %% [markdown]
# All three pieces changed, came back, and have the structure that went in. Shapes and dtypes can be read without
# computing anything: `jax.eval_shape` runs your Python with stand-ins that have a shape and a dtype, and no numbers.

# %% claims=["P2"]
contract = jax.eval_shape(full_step, state, x, y, 0.05)
for name, part in {**contract[0], **contract[1]}.items():
    print(f"{name:8}", jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", part))

# %% [markdown]
# The stand-ins are called **tracers**, and the rest of this lesson is about them. On its first call, `jax.jit(f)` runs
# your Python with tracers, records the array operations, and compiles them. Later calls with the same shapes and dtypes
# run the compiled program, and your Python does not run again. An argument marked *static* is no tracer: its value is
# compiled in, and a new value means a new program.

# %% [markdown]
# ## A compiled step remembers what it read
#
# A penalty on the weights has a coefficient. Here it is a global, read from inside a compiled function, as a config
# value often is. `watch` counts calls and traces of the function, and changes nothing about it. At `exact` the penalty
# is `decay * (2² + 1²)`.

# %%
decay = 0.01


@watch
@jax.jit
def penalised(params, x, y):
    return mse(params, x, y) + decay * jnp.sum(params["w"] ** 2)


print(f"decay {decay}: {penalised(exact, x, y):.2f}")
question = "Now decay is set to 0.1. What does penalised(exact, x, y) give?"
guess = predict("01-P3", question, ["0.05", "0.50", "an error"])

# %% claims=["P3"]
chart(penalised.seen)
decay = 0.1
result = penalised(exact, x, y)
print("calls:", penalised.counts.calls, " traces:", penalised.counts.traces)
guess.reveal(f"{result:.2f}")

# %% [markdown]
# Two calls, one trace. Here is what happened:
#
# 1. The first call ran your Python. It looked up `decay`, found 0.01, and compiled that number into the program.
# 2. The assignment changed a Python name. The compiled program does not know the name.
# 3. The second call had the same shapes and dtypes, so your Python was not asked again.

# %% [markdown]
# The repair is the rule of this lesson: **what may change is an argument**. A number that is passed in is traced like an
# array, so one program serves every value.


# %% claims=["P3"]
@watch
@jax.jit
def penalised_by(params, x, y, decay):
    return mse(params, x, y) + decay * jnp.sum(params["w"] ** 2)


print([f"{penalised_by(exact, x, y, decay):.2f}" for decay in (0.01, 0.1)])
assert penalised_by.counts.traces == 1

# %% [markdown]
# Without `jit` there is no such memory, and that makes the fault hard to find: the gradient is right while you debug it
# eagerly, and stale once it is compiled. This is a
# [report from 2019](https://github.com/jax-ml/jax/issues/1426) in small. The gradient should be `2 * scale`.

# %% claims=["P3"]
eager = jax.grad(lambda v: scale * v**2)
compiled = jax.jit(jax.grad(lambda v: scale * v**2))
for scale in (3.0, 5.0):
    print(f"scale {scale}: eager {eager(1.0)}, compiled {compiled(1.0)}")

# %% [markdown]
# An attribute is no better than a global. A static `self` is looked up by its hash and equality, and for an ordinary
# class these are its identity: a changed object is still the same object
# ([reported in 2025](https://github.com/jax-ml/jax/issues/28418)).

# %% claims=["P3"]
from functools import partial


class Penalty:
    def __init__(self, decay):
        self.decay = decay

    @partial(jax.jit, static_argnums=0)
    def __call__(self, w):
        return self.decay * jnp.sum(w**2)


penalty = Penalty(0.01)
first = penalty(exact["w"])
penalty.decay = 0.1
print(f"first {first:.2f}, after the change {penalty(exact['w']):.2f}")

# %% [markdown]
# If the object should carry the number, tell JAX that it is data. A registered dataclass is a container, as a dict is:
# its fields are traced, and `self` is an argument like any other. Lesson 03 is about such containers.

# %%
from dataclasses import dataclass


@jax.tree_util.register_dataclass
@dataclass
class TracedPenalty:
    decay: float

    @jax.jit
    def __call__(self, w):
        return self.decay * jnp.sum(w**2)


penalty = TracedPenalty(0.01)
first = penalty(exact["w"])
penalty.decay = 0.1
print(f"first {first:.2f}, after the change {penalty(exact['w']):.2f}")
assert round(float(penalty(exact["w"])), 2) == 0.50

# %% [markdown]
# ## Python runs while tracing, and then no more
#
# If your Python runs only once, so does everything in it. Think of a `print` in the middle of a compiled function, which
# is then called with 1, 2 and 3.

# %%
question = "Three calls of a jitted function with print(v) inside: how many lines appear?"
guess = predict("01-P4", question, ["0", "1", "3"])

# %% claims=["P4"]
from contextlib import redirect_stdout
from io import StringIO


@jax.jit
def double(v):
    print("print sees", v)
    return 2 * v


with redirect_stdout(StringIO()) as written:
    answers = [float(double(v)) for v in jnp.array([1.0, 2.0, 3.0])]
print(answers, written.getvalue().splitlines())
guess.reveal(len(written.getvalue().splitlines()))

# %% [markdown]
# Three right answers and one line; and the line shows no number, it shows the tracer: a float32 of shape `[]`
# ([asked in 2019](https://github.com/jax-ml/jax/issues/196), and since). Keep it as a cheap detector: a `print` that
# speaks again is a trace that happened again.

# %% [markdown]
# To see values, make printing a part of the program. `jax.debug.print` is recorded like an operation and runs on every
# call. It takes a format string and values, not an f-string: an f-string would be filled in at trace time.


# %% claims=["P4"]
@jax.jit
def double_aloud(v):
    jax.debug.print("jax.debug.print sees {v}", v=v)
    return 2 * v


for v in jnp.array([1.0, 2.0, 3.0]):
    double_aloud(v).block_until_ready()
jax.effects_barrier()

# %% [markdown]
# That is for debugging. The normal way out of a step is its return value: **metrics are returned**, and the caller
# decides when to look at them. Run the next cell and watch: calls climb, traces stay at one, and the one call that had
# to trace and compile stands high above the others.

# %% claims=["P4"]
import time


def step_with_metrics(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": loss}


compiled_step = watch(jax.jit(step_with_metrics))
chart(compiled_step.seen)
params, losses = zero, []
for _ in range(80):
    params, metrics = compiled_step(params, x, y, 0.05)
    losses.append(metrics["loss"])
    time.sleep(0.03)  # slow enough to watch
print("calls:", compiled_step.counts.calls, " traces:", compiled_step.counts.traces)

# %% [markdown]
# The list is filled *outside* the compiled function, so it holds 80 values. The first of them is 3.75: a step returns
# the loss that it measured before its own update, as the PyTorch loop does.

# %% claims=["P4"]
print("first three:", rounded(losses[:3]))
print("after 80 steps:", round(float(mse(params, x, y)), 4), rounded(params))
assert float(losses[0]) == 3.75

# %% [markdown]
# ### A list remembers traces, not runs
#
# The same question for another habit: `history.append(loss)` inside the step. You know enough by now to say what the
# list holds after three calls.

# %%
history = []


@watch
@jax.jit
def remember(v):
    history.append(v)
    return 2 * v


question = "Three calls of remember, with three values. What is len(history)?"
guess = predict("01-P9", question, ["0", "1", "3"])

# %% claims=["P9"]
chart(remember.seen)
for v in jnp.array([1.0, 2.0, 3.0]):
    remember(v)
print("calls:", remember.counts.calls, " traces:", remember.counts.traces, " holds:", history[0])
guess.reveal(len(history))

# %% [markdown]
# One entry for one trace, and the entry is a tracer that has outlived its trace. Computing with it fails, and in a
# notebook that may be ten cells further on ([2020](https://github.com/jax-ml/jax/issues/3086)). Under
# `jax.checking_leaks` it already fails where the tracer gets out.

# %% claims=["P9"]
with refused(jax.errors.UnexpectedTracerError):
    jnp.mean(history[0])
with refused(Exception), jax.checking_leaks():
    jax.jit(lambda v: history.append(v))(1.0)

# %% [markdown]
# A counter in a global has the same fate ([2019](https://github.com/jax-ml/jax/issues/1348)): the increment happens once,
# while tracing, and its result is compiled in as a constant.

# %% claims=["P9"]
total = 0


@jax.jit
def count_in_global():
    global total
    total += 1
    return jnp.int32(total)


print([int(count_in_global()) for _ in range(4)], "total:", total)

# %% [markdown]
# A counter is state. State goes in and comes out, and the caller keeps it.

# %% claims=["P9"]
count_up = jax.jit(lambda total: total + 1)
totals = [jnp.int32(0)]
for _ in range(4):
    totals.append(count_up(totals[-1]))
print([int(total) for total in totals[1:]])
assert int(totals[-1]) == 4

# %% [markdown]
# ## Arrays refuse to be changed
#
# The arrays themselves enforce the rule. Item assignment, which PyTorch and NumPy allow, is an error. What you write
# instead reads like assignment and behaves like arithmetic.

# %%
v = jnp.array([10, 20, 30])
changed = v.at[1].set(99)
question = "changed = v.at[1].set(99) has run. What is v?"
guess = predict("01-P5", question, ["[10, 99, 30]", "[10, 20, 30]"])

# %% claims=["P5"]
with refused(TypeError):
    v[1] = 99
print("v.at[1].set(99) gave", changed.tolist())
guess.reveal(v.tolist())

# %% [markdown]
# `v.at[1].set(99)` is an expression, like `v + 1`. There is also `.add`, `.multiply`, `.min`, `.max` and, to read,
# `.get`. All return a value; none touches `v`.

# %% [markdown]
# ### Out of bounds is not an error
#
# A program that already runs on an accelerator cannot easily stop and raise an exception, so JAX had to decide what an
# index outside the array means. `v` has three elements; ask for the tenth.

# %%
question = "v is [10, 20, 30]. What does v.at[9].get() give?"
guess = predict("01-P6", question, ["IndexError", "0", "30"])

# %% claims=["P6"]
print("v.at[9].set(99) gives", v.at[9].set(99).tolist())
guess.reveal(int(v.at[9].get()))

# %% [markdown]
# A write outside is **dropped**, a read outside is **clipped** to the nearest element: no error, no warning, plausible
# numbers. With `mode` you say what you want: `"fill"` reads a value that you choose, `"clip"` clips a write as well.
# Negative indices count from the end, and clip at the start.

# %% claims=["P6"]
print("read, fill: ", int(v.at[9].get(mode="fill", fill_value=-1)))
print("write, clip:", v.at[9].set(99, mode="clip").tolist())
print("read -1 and -5:", int(v.at[-1].get()), int(v.at[-5].get()))

# %% [markdown]
# Now as a fault in a model: a vocabulary of four, and a tokenizer that emits token 99. The lookup returns the last row,
# and **the gradient trains the last row** ([2022](https://github.com/jax-ml/jax/issues/9952)). `jnp.take` clipped as
# well when somebody [lost time to it in 2020](https://github.com/jax-ml/jax/issues/3774); for floats it gives NaN today.

# %% claims=["P6"]
table = jnp.array([0.0, 1.0, 2.0, 3.0])
print("table[99]:", float(table[99]), " take:", float(jnp.take(table, 99)))
print("gradient: ", jax.grad(lambda table: table[99])(table).tolist())

# %% [markdown]
# Where bounds are part of the contract, check them. Outside `jit` that is a Python `if` on a Python int; you build it in
# the lab. Inside `jit` the index is a tracer and no `if` can read it: `checkify` turns the check into a second result,
# to be looked at after the call.

# %% claims=["P6"]
from jax.experimental import checkify

lookup = jax.jit(checkify.checkify(lambda table, i: table[i], errors=checkify.index_checks))
for i in (3, 99):
    error, value = lookup(table, i)
    print(i, "->", (error.get() or "in bounds").split(". ")[0])
assert float(value) == 3.0  # the clipped value comes back all the same

# %% [markdown]
# One more index that surprises: a Boolean mask. It stands for as many indices as it has hits, and a compiled program
# needs its shapes before it has numbers. Eagerly it works, compiled it is refused
# ([2024](https://github.com/jax-ml/jax/issues/21994)); `jnp.where` has one shape and works in both.


# %%
def clear_large(v):
    return v.at[v > 15].set(0)


print("eager:", clear_large(v).tolist())
with refused(IndexError):
    jax.jit(clear_large)(v)
print("where:", jax.jit(lambda v: jnp.where(v > 15, 0, v))(v).tolist())

# %% [markdown]
# ### A result that nobody keeps
#
# In-place methods have trained your fingers: call the method, go on. With `.at` that computes an update and drops it, and
# nothing tells you ([2020](https://github.com/jax-ml/jax/issues/2287), with the function that `.at` has replaced).

# %%
params = dict(zero)
params["w"].at[0].set(1.0)
question = "params['w'] was [0, 0]. What is it after params['w'].at[0].set(1.0)?"
guess = predict("01-P7", question, ["[0.0, 0.0]", "[1.0, 0.0]"])

# %% claims=["P7"]
guess.reveal(params["w"].tolist())
leaf = params["w"].at[0].set(1.0)
print("the leaf is kept:", leaf.tolist(), " in the tree:", params["w"].tolist())
new_params = {**params, "w": leaf}
print("the tree is kept:", new_params["w"].tolist())

# %% [markdown]
# Two things have to be kept: the new **leaf**, and a new **tree** that holds it. `{**params, "w": leaf}` makes the second
# without changing the dict that you were given. With nested dicts, do so at each level: `dict(params)` copies the outer
# one alone.

# %% [markdown]
# A scalar leaf has no index 0. The index that fits every leaf is `...`, "all of it", which is what a `tree.map` over
# parameters of all shapes wants.

# %% claims=["P7"]
with refused(IndexError):
    zero["b"].at[0].set(1.0)
print(rounded(jax.tree.map(lambda leaf: leaf.at[...].set(1.0), zero)))

# %% [markdown]
# ## Immutable is not copied
#
# You may fear for your memory by now: ten updates of a 4 MB array, and each gives a new array. Eagerly that is so. What
# does the compiler make of it? You can ask before anything runs, because a compiled program carries a plan of its
# memory.


# %%
def ten_updates(v):
    for i in range(10):
        v = v.at[i].set(1.0)
    return v


big = jnp.zeros(1_000_000)  # float32: 4 MB
question = "How much scratch memory does the compiled ten_updates plan?"
guess = predict("01-P8", question, ["40 MB", "4 MB", "under 1 MB"])

# %% claims=["P8"]
plan = jax.jit(ten_updates).lower(big).compile().memory_analysis()
print("result:", plan.output_size_in_bytes, "bytes")
scratch = plan.temp_size_in_bytes / 1e6
guess.reveal("under 1 MB" if scratch < 1 else "4 MB" if scratch < 8 else "40 MB")

# %% [markdown]
# Nobody can look at the nine arrays in between, so the compiler updates one buffer in place. **Immutable is about what
# you can observe, not about what the machine does.** One copy is left: the result stands beside the input, because you
# may still want that. If you do not, donate it.

# %% claims=["P8"]
donating = jax.jit(ten_updates, donate_argnums=0)
old = jnp.zeros(1_000_000)
address = old.unsafe_buffer_pointer()
new = donating(old)
print("same memory:", new.unsafe_buffer_pointer() == address, "  old is deleted:", old.is_deleted())

# %% [markdown]
# The result took over the input's buffer, and the old name is dead. Reading it is an error, however far away that
# happens: in the logger, in the moving average, in the second call
# ([2022](https://github.com/jax-ml/jax/issues/9237)).

# %% claims=["P8"]
with refused(RuntimeError):
    old + 1

# %% [markdown]
# So rebind the name in the line of the call, `state = step(state)`, and copy beforehand what you want to keep. The loop
# below never has a second 4 MB buffer for its state; the snapshot is the one copy, and it is on purpose.

# %% claims=["P8"]
state = jnp.zeros(1_000_000)
snapshot = jnp.copy(state)
for _ in range(3):
    state = donating(state)
print("state:", state[:2].tolist(), " snapshot:", snapshot[:2].tolist())

# %% [markdown]
# Without donation, rebinding is enough to give memory back: when the last reference to an array goes, its buffer goes. A loop
# that [kept one more buffer each turn](https://github.com/jax-ml/jax/issues/10007) was a fault of JAX in 2022, and is
# gone. This is how to tell: count the arrays that are alive.

# %% claims=["P8"]
alive = []
for _ in range(5):
    scratch = jnp.ones(1237)
    alive.append(sum(array.shape == (1237,) for array in jax.live_arrays()))
print(alive)
assert alive == [1, 1, 1, 1, 1]

# %% [markdown]
# *Optional.* One kind of object is made to be changed: a `Ref`, a box whose content a compiled function may replace. It
# spares you from threading a counter or a cache through every function. This course threads its state, because then
# the signature tells what changes.

# %% claims=["P8"]
counter = jax.new_ref(0)


@jax.jit
def count(counter):
    counter[...] += 1


for _ in range(3):
    count(counter)
print("counted:", int(counter[...]))

# %% [markdown]
# ## Break it
#
# Now a step that works. It writes into the dict that it was given, as PyTorch would, and returns the loss. Eighty eager
# calls train it to where you were before.


# %%
def habit(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    for name in params:
        params[name] = params[name] - lr * grads[name]
    return loss


params = dict(zero)
for _ in range(80):
    habit(params, x, y, 0.05)
print(f"eager, after 80 steps: {mse(params, x, y):.4f}")

# %% [markdown]
# It passed its test, so somebody puts `jax.jit` in front of it to make it fast. Nothing else changes: the same function,
# the same four rows, the same 80 calls.

# %%
question = "80 calls of jax.jit(habit). What is the loss afterwards?"
guess = predict("01-B1", question, ["0.0076", "3.7500", "it raises"])

# %%
fast_habit = watch(jax.jit(habit))
params = dict(zero)
for _ in range(80):
    fast_habit(params, x, y, 0.05)
print("calls:", fast_habit.counts.calls, " traces:", fast_habit.counts.traces)
guess.reveal(f"{mse(params, x, y):.4f}")

# %% [markdown]
# It compiled, ran 80 times, and trained nothing:
#
# 1. `jit` takes your dict apart into leaves, and builds a *new* dict of tracers for your function.
# 2. `params[name] = ...` changed that new dict, once, at trace time.
# 3. The update was never returned, so nothing of it is left in the compiled program.
#
# Without `jit` the fault looked like a feature. It was a wrong step in both.

# %% [markdown]
# ## Repair it
#
# Return the change. The same three lines of arithmetic give the same numbers eagerly and compiled, and the dict that
# came in is left alone.


# %%
def repaired(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    new_params = {name: params[name] - lr * grads[name] for name in params}
    return new_params, {"loss": loss}


for name, run in {"eager": repaired, "compiled": jax.jit(repaired)}.items():
    params = zero
    for _ in range(80):
        params, metrics = run(params, x, y, 0.05)
    print(f"{name:9} {mse(params, x, y):.4f}")
    assert round(float(mse(params, x, y)), 4) == 0.0076

# %% [markdown]
# And now you can answer the second half of the question. A JAX step returns **everything that is different afterwards**:
# parameters, optimizer state, the next key, the metrics. If a piece is not in the return value, the step did not do it.

# %% [markdown]
# ## In the wild
#
# Optax, the usual library of optimizers, has no `optimizer.step()` either. Its `update` takes gradients and state, and
# returns updates and a *new state*. Below, one run keeps that state and one forgets it.

# %%
import optax


def train(optimizer, keep_state=True):
    params, opt_state = zero, optimizer.init(zero)
    for _ in range(20):
        updates, new_opt_state = optimizer.update(jax.grad(mse)(params, x, y), opt_state)
        params = optax.apply_updates(params, updates)
        opt_state = new_opt_state if keep_state else opt_state
    return round(float(mse(params, x, y)), 4)


choices = ["it raises", "trains like plain SGD", "trains like SGD with momentum"]
question = "SGD with momentum 0.9, and its new state is forgotten at each step. What happens?"
guess = predict("01-W1", question, choices)

# %%
losses = {
    "trains like SGD with momentum": train(optax.sgd(0.05, momentum=0.9)),
    "trains like plain SGD": train(optax.sgd(0.05)),
}
forgetful = train(optax.sgd(0.05, momentum=0.9), keep_state=False)
print(losses, "forgetful:", forgetful)
guess.reveal(next(name for name, loss in losses.items() if loss == forgetful))

# %% [markdown]
# The loss falls, so nobody looks. But the momentum is not there: each step starts from the same zero state. No error says
# so. The inventory does, because it asks of each piece of state whether it comes *back*.

# %% [markdown]
# **Read a real loop** (10 minutes). Open `make_step` and the loop around it in Equinox's
# [RNN example](https://github.com/patrick-kidger/equinox/blob/06e8526febaf4f1bae5393d8596e8f6ccbfddcc8/examples/train_rnn.ipynb)
# and take its inventory.
#
# 1. Which state goes in, and where does each piece of it come back?
# 2. What does `make_step` read that is not an argument? What if you changed the learning rate there?
# 3. Where is the metric looked at, and by whom?
# 4. Who owns the key of the data loader?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. `model` and `opt_state`; both are returned, and the loop rebinds both in one line, with the loss.
# 2. `optim`, the optimizer, from the enclosing function. Its learning rate is compiled in as a constant: a new optimizer
#    under the same name, after the first step, would not be seen.
# 3. In the loop, outside the compiled function: `loss.item()` fetches the number, `print` shows it.
# 4. The loader itself: it takes a key, and makes a new one for each epoch. `make_step` needs none; it is deterministic.
#
# </details>

# %% [markdown]
# **Seen in public.** People reported each of these from their own work. You have run every one of them above.
#
# | report | what was seen | section |
# |---|---|---|
# | [jax#1426](https://github.com/jax-ml/jax/issues/1426) | a closed-over value changes, the jitted gradient does not | A compiled step remembers |
# | [jax#28418](https://github.com/jax-ml/jax/issues/28418) | a changed attribute of a static `self` is ignored | A compiled step remembers |
# | [jax#196](https://github.com/jax-ml/jax/issues/196) | `print` shows a tracer instead of values | Python runs while tracing |
# | [jax#9952](https://github.com/jax-ml/jax/issues/9952), [jax#3774](https://github.com/jax-ml/jax/issues/3774) | a token outside the vocabulary trains the last row | Arrays refuse to be changed |
# | [jax#21994](https://github.com/jax-ml/jax/issues/21994) | an update by Boolean mask works eagerly only | Arrays refuse to be changed |
# | [jax#2287](https://github.com/jax-ml/jax/issues/2287) | an indexed update that updates nothing | Arrays refuse to be changed |
# | [jax#9237](https://github.com/jax-ml/jax/issues/9237) | reading a donated array raises later | Immutable is not copied |
# | [jax#10007](https://github.com/jax-ml/jax/issues/10007) | one more live buffer a turn; mended since | Immutable is not copied |
# | [jax#3086](https://github.com/jax-ml/jax/issues/3086) | a stored tracer fails cells later | Python runs while tracing |
# | [jax#1348](https://github.com/jax-ml/jax/issues/1348) | a global counter stays at 1 | Python runs while tracing |

# %% [markdown]
# ## Recap
#
# - A step is a function from old state to new state; whatever it does not return, it did not do.
# - Take the inventory: changing state, shapes and static values, owner of the key, transformed functions.
# - `jit` runs your Python once, with tracers: globals, `print` and `append` belong to that run.
# - What may change is an argument; what is measured is a return value.
# - Keep the new leaf, and the new tree around it.
# - Indices outside are clipped or dropped; where bounds matter, check them.
# - Immutable is about what you see: compiled updates run in place, and donated inputs are gone.

# %% [markdown]
# ## Lab
#
# [Lab 01](../../labs/lab01_pure_functions.ipynb) hands you a port of a PyTorch step that runs, compiles, and learns
# nothing. You build its pieces for the four rows and then repair it. About 30 minutes; visible asserts answer at once.
