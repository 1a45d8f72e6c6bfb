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
#     lab: lab09_fusion
# ---

# %% [markdown]
# # Lab 09 · Give the compiler the whole block
#
# ## Situation
#
# A reader of scanned forms finds the digit in each field. It is correct, and the accelerator is idle most of the time: a page of
# fifty fields starts several hundred programs, and compiles again whenever a form has another number of fields. People have reported the
# pieces: [nested loops over small algebra, slower than NumPy](https://github.com/jax-ml/jax/issues/20326),
# [a short last batch that compiles again](https://github.com/patrick-kidger/diffrax/issues/111),
# [a vmap that does not fit](https://github.com/jax-ml/jax/issues/11319).
#
# You turn it into **one compiled, chunked block within a budget of bytes**, and write the check that compares it with the
# old reader. About 40 minutes.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones, with other models, pages, fields and thresholds. None of them looks at a clock.

# %% nbgrader={"grade": false, "grade_id": "given_imports", "locked": true, "schema_version": 3, "solution": false, "task": false}
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import plan, watch
from traceonce.data import digits

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

CHUNK = 16  # fields at a time
CAPACITY = 64  # fields on a page, at most
BUDGET = 30_000  # bytes of temporaries


# %% [markdown]
# The model is an Equinox module: weights, and a function, which is `silu` in the models of this lab. The stages of the reader are
# plain functions of one field.


# %% nbgrader={"grade": false, "grade_id": "given_model", "locked": true, "schema_version": 3, "solution": false, "task": false}
class Model(eqx.Module):
    weights: dict
    activation: Callable = jax.nn.gelu


def cut(page, corner):
    """The 8 × 8 pixels at a corner (row, column)."""
    return jax.lax.dynamic_slice(page, (corner[0], corner[1]), (8, 8))


def prepare(crop):
    """Ink from 0 to 1, however hard the writer pressed. NaN where all pixels are the same."""
    ink = crop - jnp.min(crop)
    return ink / jnp.max(ink)


# %% nbgrader={"grade": false, "grade_id": "given_stages", "locked": true, "schema_version": 3, "solution": false, "task": false}
def embed(model, crop):
    """Four quarters of 16 pixels, each a token of 8 numbers."""
    quarters = crop.reshape(2, 4, 2, 4).swapaxes(1, 2).reshape(4, 16)
    return quarters @ model.weights["embed"]


def attend(model, tokens):
    shares = jax.nn.softmax(tokens @ model.weights["query"] @ tokens.T)
    return tokens + model.activation(shares @ tokens @ model.weights["value"])


def score(model, tokens):
    """Ten scores."""
    return tokens.reshape(-1) @ model.weights["out"] + model.weights["bias"]


# %% [markdown]
# And this is the reader as it was handed in. What it *answers* is right: for each field the digit, or −1 where the share of the best
# digit is below the threshold or the field is empty, and that share, 0 for an empty field.


# %% nbgrader={"grade": false, "grade_id": "given_reader", "locked": true, "schema_version": 3, "solution": false, "task": false}
def read_slowly(model, page, corners, threshold):
    """Digits (n,) and shares (n,) of the fields at `corners` (n, 2)."""
    found, shares = [], []
    for corner in corners:
        crop = np.asarray(jax.jit(cut)(page, corner))
        if crop.max() < 0.1:
            found.append(-1)
            shares.append(0.0)
            continue
        tokens = attend(model, embed(model, np.asarray(jax.jit(prepare)(crop))))
        share = np.asarray(jax.nn.softmax(score(model, tokens)))
        found.append(int(share.argmax()) if share.max() >= threshold else -1)
        shares.append(float(share.max()))
    return np.array(found), np.array(shares)


# %% [markdown]
# `starts` counts the compiled programs that a warm call starts, as in the lesson. A model to try things on, and a page with 50
# fields, of which the last three are empty. `old_answers()` are those of `read_slowly` for a threshold of 0.3.


# %% nbgrader={"grade": false, "grade_id": "given_starts", "locked": true, "schema_version": 3, "solution": false, "task": false}
def starts(call):
    """How many compiled programs a warm call starts."""
    jax.block_until_ready(call())
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level, options.host_tracer_level = 0, 1
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            jax.block_until_ready(call())
        planes = jax.profiler.ProfileData.from_file(str(next(Path(folder).rglob("*.xplane.pb")))).planes
        events = (event for plane in planes for line in plane.lines for event in line.events)
        spans = sorted((e.start_ns, e.duration_ns) for e in events if e.name.startswith("PjitFunction"))
    count, end = 0, 0
    for begin, length in spans:  # a call inside of a call is part of it
        count += begin >= end
        end = max(end, begin + length)
    return count


# %% nbgrader={"grade": false, "grade_id": "given_page", "locked": true, "schema_version": 3, "solution": false, "task": false}
def some_model(seed):
    rng = np.random.default_rng(seed)
    sizes = {"embed": (16, 8), "query": (8, 8), "value": (8, 8), "out": (32, 10), "bias": (10,)}
    weights = {name: jnp.asarray(rng.normal(0, 0.4, size), "float32") for name, size in sizes.items()}
    return Model(weights, jax.nn.silu)


model, page, corners = some_model(9), np.zeros((50, 100), "float32"), []
for i, pixels in enumerate(digits().pixels[:50]):
    corners.append((10 * (i // 10) + i % 3, 10 * (i % 10) + i % 2))
    if i < 47:
        page[corners[i][0] :, corners[i][1] :][:8, :8] = pixels.reshape(8, 8) * (0.4 + 0.01 * i)
page, corners = jnp.asarray(page), np.asarray(corners, "int32")


@cache
def old_answers():
    return read_slowly(model, page, corners, 0.3)


# %% [markdown]
# ## Task 1 · One field
#
# *8 minutes.* `read_one(model, page, corner, threshold)` gives the digit (int) and the share of **one** field, from the page to the
# answer, in a form that JAX can trace: `corner` and `threshold` are arrays. An empty field (largest ink below 0.1, be it nothing or a
# little dirt) has digit −1 and share 0.
#
# Look back at [Control flow and the steps around](../course/09_fusion/09_fusion.ipynb#Control-flow-and-the-steps-around).
#
# <details><summary>If jit raises a TracerBoolConversionError</summary>
#
# A Python `if` asks for a value that does not exist while tracing. Compute both, and choose with `jnp.where`. What stands in the
# branch that is not chosen may be NaN, as long as nobody takes its gradient.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "read_one", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_one(model, page, corner, threshold):
    """Digit and share of the field at a corner."""
    ### BEGIN SOLUTION
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_one", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_fields(weights, page, corners, threshold):
    return jax.vmap(lambda corner: read_one(Model(weights, jax.nn.silu), page, corner, threshold))(corners)


# %% nbgrader={"grade": true, "grade_id": "test_read_one", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
few = starts(lambda: read_slowly(model, page, corners[:5], 0.3))
print(f"read_slowly starts over 100 programs for five fields: {few > 100}")
expected = old_answers()
_compiled_fields = jax.jit(lambda *args: try_fields(*args))
got = [np.asarray(part) for part in _compiled_fields(model.weights, page, corners, jnp.float32(0.3))]
wrong = np.flatnonzero(got[0] != expected[0]).tolist()
assert not wrong, f"expected the digits of read_slowly; fields {wrong} differ."
assert np.allclose(got[1], expected[1], atol=1e-4), "expected the shares of read_slowly, 0 for an empty field."
print("Task 1: the visible asserts pass. Hidden ones use other models, pages and thresholds.")

# %% [markdown]
# ## Task 2 · All fields, one block
#
# *12 minutes, the heart of the lab.* `read_all(model, page, corners, threshold)` gives digits `(n,)` and shares `(n,)` of n fields:
#
# - A call starts **one** program, in which everything happens, from the page to digits and shares.
# - For 200 fields it plans at most `BUDGET` bytes of temporaries. `CHUNK` fields at a time fit; 200 is no multiple of it.
# - The program does not grow with n, and another model, page or threshold compiles nothing.
#
# Look back at [Many small programs, or one](../course/09_fusion/09_fusion.ipynb#Many-small-programs,-or-one)
# and [Too deep, too wide](../course/09_fusion/09_fusion.ipynb#Too-deep,-too-wide).
#
# <details><summary>If jax.jit says that the model is not a valid JAX type</summary>
#
# One of its leaves is a function. `eqx.filter_jit` traces the arrays and keeps the rest static.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "read_all", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_all(model, page, corners, threshold):
    """Digits and shares of all fields, in one compiled program."""
    ### BEGIN SOLUTION
    return _read_in_chunks(model, page, corners, threshold)


@eqx.filter_jit
def _read_in_chunks(model, page, corners, threshold):
    read = lambda corner: read_one(model, page, corner, threshold)
    return jax.lax.map(read, corners, batch_size=CHUNK)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_all", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_all(weights, page, corners, threshold):
    return read_all(Model(weights, jax.nn.silu), page, corners, threshold)


def starts_of_all(weights, page, corners, threshold):
    model = Model(weights, jax.nn.silu)
    return starts(lambda: read_all(model, page, corners, threshold))


# %% nbgrader={"grade": true, "grade_id": "test_read_all", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
expected, placed = old_answers(), jnp.asarray(corners)
got = [np.asarray(part) for part in read_all(model, page, placed, jnp.float32(0.3))]
assert got[0].shape == got[1].shape == (50,), f"expected two arrays of 50; got {[g.shape for g in got]}."
assert np.array_equal(got[0], expected[0]), "expected the digits of read_slowly."
assert np.allclose(got[1], expected[1], atol=1e-4), "expected the shares of read_slowly."
count = starts(lambda: read_all(model, page, placed, jnp.float32(0.3)))
assert count <= 2, f"expected one program for all fields (two are let pass); a call starts {count}."
with watch() as seen:
    read_all(some_model(3), page + 0.01, placed, jnp.float32(0.5))
assert seen.total.compiles == 0, f"expected no compile for other values; got {seen.total.compiles}."
many = jnp.tile(placed, (4, 1))
planned = plan(try_all, model.weights, page, many, jnp.float32(0.3)).temporaries
assert planned <= BUDGET, f"expected at most {BUDGET} bytes of temporaries for 200 fields; {planned} are planned."
print("Task 2: the visible asserts pass. Hidden ones look at the program, too.")

# %% [markdown]
# ## Task 3 · Any page
#
# *10 minutes.* `read_page(model, page, corners, threshold)` is what the application calls. `corners` is a NumPy array of any number of fields,
# `threshold` a Python number, float or int. It gives NumPy arrays: digits `(n,)` and shares `(n,)`.
#
# - After a first page, no other number of fields, threshold, page or model compiles anything, and a page starts one program.
# - More than `CAPACITY` fields raise a `ValueError`. No field at all is allowed.
#
# Look back at [Control flow and the steps around](../course/09_fusion/09_fusion.ipynb#Control-flow-and-the-steps-around).
#
# <details><summary>If another threshold compiles</summary>
#
# A Python number is static for `filter_jit`: each value is a program of its own. `jnp.float32(threshold)` is an array.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "read_page", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_page(model, page, corners, threshold):
    """Digits and shares of a page's fields, as NumPy arrays."""
    ### BEGIN SOLUTION
    n = len(corners)
    if n > CAPACITY:
        raise ValueError(f"a page has at most {CAPACITY} fields; got {n}.")
    padded = np.zeros((CAPACITY, 2), "int32")
    padded[:n] = corners
    found, shares = read_all(model, page, padded, jnp.float32(threshold))
    return np.asarray(found)[:n], np.asarray(shares)[:n]
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_page", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_page(weights, page, corners, threshold):
    return read_page(Model(weights, jax.nn.silu), page, corners, threshold)


def starts_of_page(weights, page, corners, threshold):
    model = Model(weights, jax.nn.silu)
    return starts(lambda: read_page(model, page, corners, threshold))


# %% nbgrader={"grade": true, "grade_id": "test_read_page", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
got, expected = read_page(model, page, corners, 0.3), old_answers()
assert all(isinstance(part, np.ndarray) for part in got), "expected NumPy arrays."
assert np.array_equal(got[0], expected[0]), f"expected the digits of read_slowly; got {got[0]}."
with watch(everything=True) as seen:
    seven = read_page(some_model(4), page, corners[:7], 0.6)
assert seven[0].shape == (7,), f"expected seven digits; got shape {seven[0].shape}."
assert seen.total.compiles == 0, f"expected no compile for seven fields; got {seen.total.compiles}."
count = starts(lambda: read_page(model, page, corners, 0.3))
assert count <= 3, f"expected one program for a page (three are let pass); it starts {count}."
try:
    read_page(model, page, np.zeros((CAPACITY + 1, 2), "int32"), 0.3)
except ValueError:
    print("Task 3: the visible asserts pass. Hidden ones use other pages.")
else:
    raise AssertionError("expected a ValueError for more than CAPACITY fields.")

# %% [markdown]
# ## Task 4 · The comparison
#
# *8 minutes.* Before the new reader ships, its answers are compared with the old ones. `agrees(new, old, threshold)` takes two pairs (digits, shares) and
# says True or False:
#
# - Every share must be within `TOLERANCE` of the old one. A NaN agrees with nothing.
# - Every digit must be equal, except where the old share lies within `TOLERANCE` of the threshold: there rounding decides, and the digit
#   may be −1 in one of them. That field alone is excused.
# - Another number of fields does not agree. Two readings without any field do.
#
# Look back at [The last digits](../course/09_fusion/09_fusion.ipynb#The-last-digits).


# %% nbgrader={"grade": false, "grade_id": "given_tolerance", "locked": true, "schema_version": 3, "solution": false, "task": false}
TOLERANCE = 1e-4


# %% nbgrader={"grade": false, "grade_id": "agrees", "locked": false, "schema_version": 3, "solution": true, "task": false}
def agrees(new, old, threshold):
    """Whether two readings are the same up to rounding."""
    ### BEGIN SOLUTION
    (new_digits, new_shares), (old_digits, old_shares) = ([np.asarray(part) for part in pair] for pair in (new, old))
    if new_digits.shape != old_digits.shape or new_shares.shape != old_shares.shape:
        return False
    close = np.abs(new_shares - old_shares) <= TOLERANCE
    tie = np.abs(old_shares - threshold) <= TOLERANCE
    refused = (new_digits == -1) | (old_digits == -1)
    return bool(np.all(close) and np.all((new_digits == old_digits) | (tie & refused)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_agrees", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
old = np.array([3, -1, 7]), np.array([0.9, 0.2, 0.5])
assert agrees((old[0], old[1] + 3e-6), old, 0.3), "expected rounding to pass."
assert not agrees((old[0], old[1] + [0, 0, 1e-3]), old, 0.3), "expected a share that is off by 0.001 to be noticed."
assert not agrees((np.array([3, -1, 1]), old[1]), old, 0.3), "expected another digit to be noticed."
assert agrees((np.array([3, -1, -1]), old[1] - 1e-6), old, 0.5), "expected a share at the threshold to pass as -1."
assert agrees(read_page(model, page, corners, 0.3), old_answers(), 0.3), (
    "expected your reader to agree with the old one."
)
print("Task 4: the visible asserts pass. Hidden ones plant other faults.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - What the functions answer, for other models, pages, fields and thresholds, with empty fields among them.
# - The program that JAX makes of them: its size, the shapes that it returns, its planned bytes for 200 fields.
# - How many programs a call starts, and what compiles when only values, or the number of fields, change.
# - What your comparison lets pass, and what it notices.

# %% [markdown]
# ## Going further
#
# - Plot planned bytes and time for a field against `CHUNK`, as in the lesson. Where would you put it on your machine?
# - Replace the model's `activation` by a lambda that is made for each page, and let `explain` tell what happens.
# - Make `read_all` work on a batch of pages. Which axis would you chunk?
