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
# # From PyTorch to JAX
#
# What you write in PyTorch, what it becomes in JAX, and the lesson that is about it. Look up a row; this page is not meant to be read
# from the top. Under each habit stands PyTorch code; what it printed was recorded from PyTorch 2.13.0 on a CPU, from that very text.
# The cell below it runs JAX, and prints both.

# %%
import jax
import jax.numpy as jnp
import numpy as np
import optax

from traceonce import syncs, watch
from traceonce.data import torch_habits

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too
recorded = torch_habits()


def rounded(array):
    return np.asarray(array, "float64").round(4).tolist()


def beside(row, value):
    """Print what PyTorch printed, what JAX gives, and whether they are the same."""
    theirs = recorded.printed[row]
    print(f"PyTorch {theirs}\nJAX     {value}\n{'the same' if theirs == str(value) else 'not the same'}")


# %% [markdown]
# ## State and steps
#
# | in PyTorch | in JAX | lesson |
# |---|---|---|
# | [`w[0] = 1`](#write) | `w = w.at[0].set(1)` | 01 [Arrays refuse to be changed](../01_pure_functions/01_pure_functions.ipynb#Arrays-refuse-to-be-changed) |
# | [`w += 1` for everybody who holds `w`](#alias) | a new array; others keep the old one | 01 [The step returns the whole change](../01_pure_functions/01_pure_functions.ipynb#The-step-returns-the-whole-change) |
# | [`optimizer.step()`](#step) | `updates, state = optimizer.update(...)` | 04 [A step, and what it threads](../04_transformations/04_transformations.ipynb#A-step,-and-what-it-threads) |
# | [`p.grad` adds up until `zero_grad()`](#accumulate) | a gradient is a value; nothing to zero | 01 [The step returns the whole change](../01_pure_functions/01_pure_functions.ipynb#The-step-returns-the-whole-change) |

# %% [markdown]
# ### write
#
# ```python
# w = torch.zeros(2)
# w[0] = 1.0
# print(w.tolist())
# ```

# %%
w = jnp.zeros(2)
w = w.at[0].set(1.0)
beside("write", w.tolist())

# %% [markdown]
# ### alias
#
# ```python
# w = torch.zeros(2)
# other = w
# w += 1
# print(other.tolist())
# ```
#
# Two names for one tensor see the change. Two names for one array do not.

# %%
w = jnp.zeros(2)
other = w
w += 1
beside("alias", other.tolist())

# %% [markdown]
# ### step
#
# ```python
# w = torch.tensor([2.0, -1.0], requires_grad=True)
# optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
# for _ in range(3):
#     optimizer.zero_grad()
#     (w**2).sum().backward()
#     optimizer.step()
# print([round(v, 4) for v in w.tolist()])
# ```
#
# Optax returns the updates and its next state; `apply_updates` returns the next parameters.

# %%
w = jnp.array([2.0, -1.0])
optimizer = optax.sgd(0.1, momentum=0.9)
state = optimizer.init(w)
for _ in range(3):
    updates, state = optimizer.update(jax.grad(lambda w: jnp.sum(w**2))(w), state)
    w = optax.apply_updates(w, updates)
beside("step", rounded(w))

# %% [markdown]
# ### accumulate
#
# ```python
# w = torch.tensor(3.0, requires_grad=True)
# for _ in range(2):
#     (w**2).backward()
# print(w.grad.item())
# ```

# %%
slope = jax.grad(lambda w: w**2)
for _ in range(2):
    gradient = slope(3.0)
beside("accumulate", float(gradient))

# %% [markdown]
# ## Randomness
#
# | in PyTorch | in JAX | lesson |
# |---|---|---|
# | [`torch.randn(2)`, twice](#draw) | `jax.random.normal(key, (2,))`; split for the next | 02 [A key is a value](../02_random_keys/02_random_keys.ipynb#A-key-is-a-value) |
# | [`F.dropout(x, 0.5)`](#dropout) | `bernoulli(key, 0.5)` and a division | 02 [One parent, one owner](../02_random_keys/02_random_keys.ipynb#One-parent,-one-owner) |
# | [`torch.get_rng_state()`](#rng_state) | `jax.random.key_data(key)` | 02 [The stream goes on](../02_random_keys/02_random_keys.ipynb#The-stream-goes-on) |

# %% [markdown]
# ### draw
#
# ```python
# torch.manual_seed(0)
# first, second = torch.randn(2), torch.randn(2)
# print(torch.equal(first, second))
# ```
#
# The generator moves on by itself. A key does not.

# %%
key = jax.random.key(0)
first, second = jax.random.normal(key, (2,)), jax.random.normal(key, (2,))
beside("draw", bool((first == second).all()))

# %% [markdown]
# ### dropout
#
# ```python
# x = F.dropout(torch.ones(1000), 0.5)
# print(sorted(set(x.tolist())))
# ```
#
# The rate of PyTorch says what is dropped, that of `bernoulli` what is kept. Both scale what stays.

# %%
keep = jax.random.bernoulli(jax.random.key(0), 0.5, (1000,))
x = jnp.where(keep, jnp.ones(1000) / 0.5, 0.0)
beside("dropout", sorted(set(x.tolist())))

# %% [markdown]
# ### rng_state
#
# ```python
# state = torch.get_rng_state()
# first = torch.randn(3)
# torch.set_rng_state(state)
# print(torch.equal(first, torch.randn(3)))
# ```

# %%
state = np.asarray(jax.random.key_data(key))
first = jax.random.normal(key, (3,))
again = jax.random.normal(jax.random.wrap_key_data(state), (3,))
beside("rng_state", bool((first == again).all()))

# %% [markdown]
# ## Modules and parameters
#
# | in PyTorch | in JAX | lesson |
# |---|---|---|
# | [`F.linear(x, weight)`](#linear) | `x @ weight.T` | 03 [Weights from PyTorch](../03_pytrees/03_pytrees.ipynb#Weights-from-PyTorch) |
# | [`model.state_dict()`](#names) | `jax.tree.leaves_with_path(params)` | 03 [Structure, leaves and paths](../03_pytrees/03_pytrees.ipynb#Structure,-leaves-and-paths) |
# | [`sum(p.numel() for p in ...)`](#count) | `sum(p.size for p in jax.tree.leaves(...))` | 03 [Structure, leaves and paths](../03_pytrees/03_pytrees.ipynb#Structure,-leaves-and-paths) |
# | [`nn.Linear` initialises itself](#init) | you name the initialiser | 03 [Weights from PyTorch](../03_pytrees/03_pytrees.ipynb#Weights-from-PyTorch) |
# | [`b.requires_grad_(False)`](#freeze) | differentiate by what trains | 03 [What trains and what does not](../03_pytrees/03_pytrees.ipynb#What-trains-and-what-does-not) |

# %% [markdown]
# ### linear
#
# ```python
# weight = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
# print(F.linear(torch.tensor([1.0, 0.0, 2.0]), weight).tolist())
# ```
#
# A linear layer's weight is (outputs, inputs). Code that writes `x @ w` wants it transposed.

# %%
weight = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
beside("linear", (jnp.array([1.0, 0.0, 2.0]) @ weight.T).tolist())

# %% [markdown]
# ### names
#
# ```python
# model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1, bias=False))
# print(list(model.state_dict()))
# ```
#
# Names come from attributes, in the order of their making. Paths come from the keys of your own containers, and a dict's are
# sorted.

# %%
params = {"0": {"weight": jnp.ones((3, 2)), "bias": jnp.ones(3)}, "1": {"weight": jnp.ones((1, 3))}}
paths = jax.tree.leaves_with_path(params)
beside("names", [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths])

# %% [markdown]
# ### count
#
# ```python
# model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1, bias=False))
# print(sum(p.numel() for p in model.parameters()))
# ```

# %%
beside("count", sum(leaf.size for leaf in jax.tree.leaves(params)))

# %% [markdown]
# ### init
#
# ```python
# torch.manual_seed(0)
# print(round(nn.Linear(100, 1000).weight.std().item(), 2))
# ```
#
# The spread of 100 inputs: PyTorch's uniform default is narrower than `lecun_normal`, which most JAX libraries use.
# `variance_scaling(1/3, "fan_in", "uniform")` is PyTorch's.

# %%
make = jax.nn.initializers.lecun_normal()
beside("init", round(float(make(key, (100, 1000)).std()), 2))
same = jax.nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")
beside("init", round(float(same(key, (100, 1000)).std()), 2))

# %% [markdown]
# ### freeze
#
# ```python
# w, b = torch.tensor(2.0, requires_grad=True), torch.tensor(1.0)
# ((3 * w + b) ** 2).backward()
# print([p.grad.item() for p in (w, b) if p.grad is not None])
# ```

# %%
loss = lambda w, b: (3 * w + b) ** 2
beside("freeze", [float(g) for g in jax.grad(loss, argnums=(0,))(2.0, 1.0)])

# %% [markdown]
# ## Gradients and transformations
#
# | in PyTorch | in JAX | lesson |
# |---|---|---|
# | [`x.detach()`](#detach) | `jax.lax.stop_gradient(x)` | 04 [One scalar at a time](../04_transformations/04_transformations.ipynb#One-scalar-at-a-time) |
# | [`torch.func.vmap(grad(f))`](#per_row) | `jax.vmap(jax.grad(f))` | 04 [The order decides what exists](../04_transformations/04_transformations.ipynb#The-order-decides-what-exists) |
# | [`autograd.functional.hvp`](#hvp) | `jax.jvp` of `jax.grad` | 04 [One more composition](../04_transformations/04_transformations.ipynb#One-more-composition) |
# | [the gradient of a norm at 0 is 0](#norm) | it is NaN: give it a safe argument | 04 [The row that pulls nothing](../04_transformations/04_transformations.ipynb#The-row-that-pulls-nothing) |

# %% [markdown]
# ### detach
#
# ```python
# x = torch.tensor(3.0, requires_grad=True)
# (x * x.detach()).backward()
# print(x.grad.item())
# ```

# %%
beside("detach", float(jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0)))

# %% [markdown]
# ### per_row
#
# ```python
# from torch.func import grad, vmap
#
# loss = lambda w, x: (w @ x) ** 2
# rows = torch.tensor([[1.0, 0.0], [1.0, 2.0]])
# print(vmap(grad(loss), in_dims=(None, 0))(torch.ones(2), rows).tolist())
# ```

# %%
loss = lambda w, x: (w @ x) ** 2
rows = jnp.array([[1.0, 0.0], [1.0, 2.0]])
beside("per_row", jax.vmap(jax.grad(loss), in_axes=(None, 0))(jnp.ones(2), rows).tolist())

# %% [markdown]
# ### hvp
#
# ```python
# f = lambda x: (x**3).sum()
# print(torch.autograd.functional.hvp(f, torch.tensor([1.0, 2.0]), torch.ones(2))[1].tolist())
# ```

# %%
f = lambda x: jnp.sum(x**3)
beside("hvp", jax.jvp(jax.grad(f), (jnp.array([1.0, 2.0]),), (jnp.ones(2),))[1].tolist())

# %% [markdown]
# ### norm
#
# ```python
# x = torch.zeros(2, requires_grad=True)
# torch.linalg.vector_norm(x).backward()
# print(x.grad.tolist())
# ```

# %%
beside("norm", jax.grad(jnp.linalg.norm)(jnp.zeros(2)).tolist())

# %% [markdown]
# ## Control flow and shapes
#
# | in PyTorch | in JAX | lesson |
# |---|---|---|
# | [`if x.sum() > 0:`](#branch) | `jnp.where`, or `jax.lax.cond` | 06 [Branches and loops](../06_padding_masks/06_padding_masks.ipynb#Branches-and-loops) |
# | [`for x in sequence:`](#loop) | `jax.lax.scan(f, state, sequence)` | 06 [Loops](../06_padding_masks/06_padding_masks.ipynb#Loops) |
# | [`x[x > 0]`](#select) | a fixed size and a mask | 05 [Shapes made by data](../05_retracing/05_retracing.ipynb#Shapes-made-by-data) |
# | [`x[5]` of three raises](#outside) | it is clipped | 01 [Out of bounds is not an error](../01_pure_functions/01_pure_functions.ipynb#Out-of-bounds-is-not-an-error) |
# | [`x.index_add_(0, index, rows)`](#scatter) | `x.at[index].add(rows)` | 01 [Arrays refuse to be changed](../01_pure_functions/01_pure_functions.ipynb#Arrays-refuse-to-be-changed) |
# | [`x.flip(0)`, as `x[::-1]` is refused](#reverse) | `x[::-1]` | 01 [Arrays refuse to be changed](../01_pure_functions/01_pure_functions.ipynb#Arrays-refuse-to-be-changed) |

# %% [markdown]
# ### branch
#
# ```python
# def f(x):
#     if x.sum() > 0:
#         return 2 * x
#     return -x
#
# print(f(torch.tensor([1.0, -3.0])).tolist())
# ```
#
# Under `jit` Python cannot see the value.

# %%
f = jax.jit(lambda x: jnp.where(x.sum() > 0, 2 * x, -x))
beside("branch", f(jnp.array([1.0, -3.0])).tolist())

# %% [markdown]
# ### loop
#
# ```python
# state, seen = torch.tensor(0.0), []
# for x in torch.tensor([1.0, 2.0, 3.0]):
#     state = 0.5 * state + x
#     seen.append(state.item())
# print(seen)
# ```


# %%
def turn(state, x):
    state = 0.5 * state + x
    return state, state


_, seen = jax.lax.scan(turn, 0.0, jnp.array([1.0, 2.0, 3.0]))
beside("loop", seen.tolist())

# %% [markdown]
# ### select
#
# ```python
# x = torch.tensor([1.0, -2.0, 3.0])
# print(x[x > 0].tolist())
# ```
#
# How many there are is data. Under `jit` the shape cannot be.

# %%
x = jnp.array([1.0, -2.0, 3.0])
(places,) = jax.jit(lambda x: jnp.nonzero(x > 0, size=3, fill_value=-1))(x)
beside("select", jnp.where(places >= 0, x[places], 0.0).tolist())

# %% [markdown]
# ### outside
#
# ```python
# x = torch.tensor([1.0, 2.0, 3.0])
# try:
#     print(x[5].item())
# except IndexError as error:
#     print(type(error).__name__)
# ```

# %%
x = jnp.array([1.0, 2.0, 3.0])
at = jax.jit(lambda x, i: x[i])
beside("outside", float(at(x, 5)))

# %% [markdown]
# ### scatter
#
# ```python
# x = torch.zeros(3)
# x.index_add_(0, torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 3.0]))
# print(x.tolist())
# ```
#
# An index that comes twice counts twice, in both.

# %%
x = jnp.zeros(3).at[jnp.array([0, 2, 2])].add(jnp.array([1.0, 2.0, 3.0]))
beside("scatter", x.tolist())

# %% [markdown]
# ### reverse
#
# ```python
# x = torch.tensor([1, 2, 3])
# try:
#     print(x[::-1].tolist())
# except ValueError as error:
#     print(type(error).__name__)
# ```

# %%
beside("reverse", jnp.array([1, 2, 3])[::-1].tolist())

# %% [markdown]
# ## Dtypes and defaults
#
# | in PyTorch | in JAX | lesson |
# |---|---|---|
# | [integers are int64](#integers) | they are int32 | 05 [The key, part by part](../05_retracing/05_retracing.ipynb#The-key,-part-by-part) |
# | [NumPy's float64 stays](#double) | it becomes float32 | 07 [What crosses the boundary](../07_honest_timing/07_honest_timing.ipynb#What-crosses-the-boundary) |
# | [a half and an integer make a half](#half) | the same; a Python number is weak in both | 05 [Weak types](../05_retracing/05_retracing.ipynb#Weak-types) |
# | [`//` of integers rounds down, `/` makes floats](#divide) | the same | 05 [The key, part by part](../05_retracing/05_retracing.ipynb#The-key,-part-by-part) |
# | [`x.std()` divides by n − 1](#std) | `jnp.std` by n; `ddof=1` is PyTorch's | 06 [Statistics across the batch](../06_padding_masks/06_padding_masks.ipynb#Statistics-across-the-batch) |
# | [`F.gelu` is exact](#gelu) | `jax.nn.gelu` approximates by default | 12 [Preserve or port](../12_research_repo/12_research_repo.ipynb#Preserve-or-port) |
# | [`F.cross_entropy` is a mean](#cross_entropy) | Optax gives one loss a row | 06 [The denominator is the valid count](../06_padding_masks/06_padding_masks.ipynb#The-denominator-is-the-valid-count) |
# | [`ignore_index=-100`](#ignore) | a mask, and its sum as the denominator | 06 [The denominator is the valid count](../06_padding_masks/06_padding_masks.ipynb#The-denominator-is-the-valid-count) |
# | [images are NCHW](#layout) | most JAX code has NHWC: name the axes | 03 [Weights from PyTorch](../03_pytrees/03_pytrees.ipynb#Weights-from-PyTorch) |
# | [`F.interpolate` does not smooth](#resize) | `jax.image.resize` smooths when it shrinks | 12 [Preserve or port](../12_research_repo/12_research_repo.ipynb#Preserve-or-port) |

# %% [markdown]
# ### integers
#
# ```python
# print(str(torch.tensor([1, 2]).dtype).removeprefix("torch."))
# ```

# %%
beside("integers", jnp.array([1, 2]).dtype)

# %% [markdown]
# ### double
#
# ```python
# print(str(torch.from_numpy(np.ones(2)).dtype).removeprefix("torch."))
# ```

# %%
beside("double", jnp.asarray(np.ones(2)).dtype)

# %% [markdown]
# ### half
#
# ```python
# x = torch.ones(2, dtype=torch.float16)
# mixed = (x * torch.ones(2, dtype=torch.int32), x * 0.5)
# print([str(y.dtype).removeprefix("torch.") for y in mixed])
# ```

# %%
x = jnp.ones(2, jnp.float16)
beside("half", [str(y.dtype) for y in (x * jnp.ones(2, jnp.int32), x * 0.5)])

# %% [markdown]
# ### divide
#
# ```python
# x = torch.tensor([-7, 7])
# print((x // 2).tolist(), (x / 2).tolist())
# ```

# %%
x = jnp.array([-7, 7])
beside("divide", f"{(x // 2).tolist()} {(x / 2).tolist()}")

# %% [markdown]
# ### std
#
# ```python
# print(round(torch.tensor([1.0, 2.0, 3.0, 4.0]).std().item(), 4))
# ```

# %%
x = jnp.array([1.0, 2.0, 3.0, 4.0])
beside("std", round(float(jnp.std(x)), 4))
beside("std", round(float(jnp.std(x, ddof=1)), 4))

# %% [markdown]
# ### gelu
#
# ```python
# print(round(F.gelu(torch.tensor(2.0)).item(), 4))
# ```

# %%
beside("gelu", round(float(jax.nn.gelu(2.0)), 4))
beside("gelu", round(float(jax.nn.gelu(2.0, approximate=False)), 4))

# %% [markdown]
# ### cross_entropy
#
# ```python
# scores = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
# print(round(F.cross_entropy(scores, torch.tensor([0, 0])).item(), 4))
# ```

# %%
scores, labels = jnp.array([[2.0, 0.0], [0.0, 1.0]]), jnp.array([0, 0])
each = optax.softmax_cross_entropy_with_integer_labels(scores, labels)
beside("cross_entropy", rounded(each))
beside("cross_entropy", round(float(each.mean()), 4))

# %% [markdown]
# ### ignore
#
# ```python
# scores = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
# print(round(F.cross_entropy(scores, torch.tensor([0, -100])).item(), 4))
# ```

# %%
valid = jnp.array([True, False])
beside("ignore", round(float(jnp.sum(each * valid) / jnp.sum(valid)), 4))

# %% [markdown]
# ### layout
#
# ```python
# x, w = torch.ones(1, 3, 5, 5), torch.ones(6, 3, 2, 2)
# print(tuple(F.conv2d(x, w).shape))
# ```
#
# `jax.lax` takes any order; the shape of the result says which.

# %%
x, w = jnp.ones((1, 5, 5, 3)), jnp.ones((2, 2, 3, 6))
order = ("NHWC", "HWIO", "NHWC")
y = jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=order)
beside("layout", y.shape)

# %% [markdown]
# ### resize
#
# ```python
# x = torch.tensor([[[0.0, 0.0, 0.0, 8.0]]])
# print([round(v, 4) for v in F.interpolate(x, size=2, mode="linear")[0, 0].tolist()])
# ```

# %%
x = jnp.array([0.0, 0.0, 0.0, 8.0])
beside("resize", rounded(jax.image.resize(x, (2,), "linear")))
beside("resize", rounded(jax.image.resize(x, (2,), "linear", antialias=False)))

# %% [markdown]
# ## Data, device and memory
#
# | in PyTorch | in JAX | lesson |
# |---|---|---|
# | [`torch.from_numpy` shares memory](#numpy) | `jnp.array` copies | 01 [Immutable is not copied](../01_pure_functions/01_pure_functions.ipynb#Immutable-is-not-copied) |
# | [`loss.item()` on every step](#item) | stack, and fetch once | 10 [Lines that wait](../10_feeding_the_device/10_feeding_the_device.ipynb#Lines-that-wait) |
# | [`torch.cuda.synchronize()` before the clock stops](#synchronize) | `jax.block_until_ready(tree)` | 07 [Wait for every leaf](../07_honest_timing/07_honest_timing.ipynb#Wait-for-every-leaf) |
# | [`w.add_(1)` takes no new memory](#reuse) | `donate_argnums`: the old array is gone | 08b [Donation](../08_memory/08b_device_memory.ipynb#Donation) |
# | [`utils.checkpoint.checkpoint(f, x)`](#checkpoint) | `jax.checkpoint(f)(x)` | 08b [The tape of a scan](../08_memory/08b_device_memory.ipynb#The-tape-of-a-scan) |
# | [`torch.save(model.state_dict())`](#save) | arrays by path, and the key's data | 10 [A run that can be stopped](../10_feeding_the_device/10_feeding_the_device.ipynb#A-run-that-can-be-stopped) |

# %% [markdown]
# ### numpy
#
# ```python
# source = np.zeros(2, "float32")
# x = torch.from_numpy(source)
# source[0] = 5.0
# print(x.tolist())
# ```

# %%
source = np.zeros(2, "float32")
x = jnp.array(source)
source[0] = 5.0
beside("numpy", x.tolist())

# %% [markdown]
# ### item
#
# ```python
# losses = [torch.tensor(float(n)) for n in range(3)]
# print([loss.item() for loss in losses])
# ```
#
# Both wait for the device. `syncs` counts it.

# %%
losses = [jnp.float32(n) for n in range(3)]
with syncs() as seen:
    fetched = np.asarray(jnp.stack(losses))
beside("item", fetched.tolist())
print("reads:", seen.reads)

# %% [markdown]
# ### synchronize
#
# ```python
# y = torch.ones(2, 2) @ torch.ones(2, 2)
# torch.cpu.synchronize()
# print(y.sum().item())
# ```
#
# (Recorded on a CPU.)

# %%
y = jax.block_until_ready(jnp.ones((2, 2)) @ jnp.ones((2, 2)))
beside("synchronize", float(y.sum()))

# %% [markdown]
# ### reuse
#
# ```python
# w = torch.zeros(1000)
# place = w.data_ptr()
# w.add_(1)
# print(w.data_ptr() == place)
# ```

# %%
w = jnp.zeros(1000)
new = jax.jit(lambda w: w + 1, donate_argnums=0)(w)
beside("reuse", w.is_deleted())

# %% [markdown]
# ### checkpoint
#
# ```python
# from torch.utils.checkpoint import checkpoint
#
# x = torch.tensor(0.5, requires_grad=True)
# checkpoint(lambda x: torch.sin(torch.sin(x)), x, use_reentrant=False).backward()
# print(round(x.grad.item(), 4))
# ```

# %%
f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
beside("checkpoint", round(float(jax.grad(f)(0.5)), 4))

# %% [markdown]
# ### save
#
# ```python
# import io
#
# file = io.BytesIO()
# torch.save({"w": torch.arange(3.0)}, file)
# file.seek(0)
# print(torch.load(file, weights_only=True)["w"].tolist())
# ```

# %%
import io

file = io.BytesIO()
np.savez(file, **{"w": jnp.arange(3.0)})
file.seek(0)
beside("save", jnp.asarray(np.load(file)["w"]).tolist())

# %% [markdown]
# ## Compiling, and several devices
#
# | in PyTorch | in JAX | lesson |
# |---|---|---|
# | [`torch.compile` guards what it read](#global) | `jit` keeps what it read | 01 [A compiled step remembers what it read](../01_pure_functions/01_pure_functions.ipynb#A-compiled-step-remembers-what-it-read) |
# | [a new shape compiles once more, then shapes are dynamic](#shapes) | every new shape compiles | 05 [The key, part by part](../05_retracing/05_retracing.ipynb#The-key,-part-by-part) |
# | [`DistributedSampler` repeats rows to come out even](#sampler) | pad, and count the rows that are real | 11 [Repair it](../11_devices/11_devices.ipynb#Repair-it) |

# %% [markdown]
# ### global
#
# ```python
# scale = 2.0
# f = torch.compile(lambda x: scale * x, backend="eager")
# f(torch.tensor(1.0))
# scale = 5.0
# print(f(torch.tensor(1.0)).item())
# ```

# %%
scale = 2.0
f = jax.jit(lambda x: scale * x)
f(1.0)
scale = 5.0
beside("global", float(f(1.0)))

# %% [markdown]
# ### shapes
#
# ```python
# graphs = []
#
#
# def backend(graph, inputs):
#     graphs.append(graph)
#     return graph.forward
#
#
# f = torch.compile(lambda x: 2 * x, backend=backend)
# for n in (3, 3, 4, 5, 6):
#     f(torch.zeros(n))
# print(len(graphs))
# ```

# %%
f = watch(jax.jit(lambda x: 2 * x))
for n in (3, 3, 4, 5, 6):
    f(jnp.zeros(n))
beside("shapes", f.counts.traces)

# %% [markdown]
# ### sampler
#
# ```python
# from torch.utils.data import DistributedSampler
#
# parts = [DistributedSampler(range(10), 4, rank, shuffle=False) for rank in range(4)]
# print(sum(len(list(part)) for part in parts))
# ```
#
# Ten rows for four members. Which number is in the denominator?

# %%
valid = jnp.arange(12) < 10  # twelve places on four devices
beside("sampler", int(jnp.sum(valid)))
