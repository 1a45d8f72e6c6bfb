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
#     lab: lab08_memory
# ---

# %% [markdown]
# # Lab 08 · The same numbers in less memory
#
# ## Situation
#
# An evaluation runs on a shared machine, and dies at night with exit code 137. It fans a small network out over noise samples
# [and keeps all of them at once](https://github.com/jax-ml/jax/issues/11319), fits a readout on features that it holds whole,
# and keeps every mask that it has ever decoded. Somebody added `gc.collect()`, which frees what nobody holds; here somebody
# holds everything.
#
# You bring each part under a stated budget, and no number may change: same samples, same keys, same precision. About 40 minutes.
# What you need is in [lesson 08](../course/08_memory).

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones on random data, and asks the compiler what your programs plan.

# %% nbgrader={"grade": false, "grade_id": "given_data", "locked": true, "schema_version": 3, "solution": false, "task": false}
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import plan
from traceonce.data import digits

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

pixels, labels = digits()
cells = pixels.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)  # a coarse sensor: 4 x 4 cells
odd = np.where(labels % 2, 1, -1).astype("float32")

# %% [markdown]
# The network: 128 fixed random features of 16 sensor cells, and a readout `w`, `b` that is fitted. A sample of the noise
# drops some cells, and its key decides which.


# %% nbgrader={"grade": false, "grade_id": "given_network", "locked": true, "schema_version": 3, "solution": false, "task": false}
def features(network, x):
    """(n, 16) -> (n, 128). A row of zeros has features too: tanh(shift)."""
    return jnp.tanh(x @ network["projection"] + network["shift"])


def noisy_score(network, x, key):
    """The scores (n,) of all rows, with the cells that this key drops."""
    keep = jax.random.bernoulli(key, 0.8, (16,))
    return features(network, x * keep / 0.8) @ network["w"] + network["b"]


rng = np.random.default_rng(8)
network = {
    "projection": rng.normal(0, 0.7, (16, 128)).astype("float32"),
    "shift": rng.uniform(-1, 1, 128).astype("float32"),
}

# %% [markdown]
# ## Task 1 · normal_equations
#
# *9 minutes.* For `x` of shape `(n, 16)` and targets `y` of shape `(n,)`, with `f = features(network, x)`, return the pair
# `(f.T @ f + strength * identity, f.T @ y)`. For 4003 rows, `f` has 2.0 MB. For up to so many rows your program may plan **600 kB of
# temporaries**: take blocks of rows and add up. The result is that of one shot, in float32, up to rounding. 4003 is prime, so the
# last block is short.
#
# Look back at [Sums instead of rows](../course/08_memory/08_memory.ipynb#Sums-instead-of-rows).

# %% [markdown]
# <details><summary>If the numbers are off although each block is right</summary>
#
# Rows of zeros that fill the last block are rows: their features are not zero. Set the *features* to zero with a mask, or add
# the short rest outside of the scan. And `strength` belongs to the sum, not to each block.
#
# </details>
#
# <details><summary>If blocks plan as much as one shot</summary>
#
# A Python loop is unrolled, and the compiler may compute all features first. `lax.map` stacks what it returns. `lax.scan` or
# `lax.fori_loop` with the sums as carry holds one block.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "normal_equations", "locked": false, "schema_version": 3, "solution": true, "task": false}
def normal_equations(network, x, y, strength):
    """(f.T f + strength I, f.T y) of the features f of x, a block of rows at a time."""
    ### BEGIN SOLUTION
    n, size = x.shape[0], 128
    width = network["shift"].shape[0]
    whole = n // size * size

    def add(sums, block):
        f = features(network, block[0])
        return (sums[0] + f.T @ f, sums[1] + f.T @ block[1]), None

    start = strength * jnp.eye(width), jnp.zeros(width)
    sums, _ = jax.lax.scan(add, start, (x[:whole].reshape(-1, size, x.shape[1]), y[:whole].reshape(-1, size)))
    return add(sums, (x[whole:], y[whole:]))[0]
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_views", "locked": true, "schema_version": 3, "solution": false, "task": false}
views = np.concatenate([cells, np.roll(cells, 1, axis=1), np.roll(cells, 4, axis=1)])[:4003]
view_targets = np.tile(odd, 3)[:4003]

# %% nbgrader={"grade": true, "grade_id": "test_normal_equations", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gram, moment = (np.asarray(part) for part in jax.jit(normal_equations)(network, views, view_targets, 0.1))
f = np.tanh(np.float64(views) @ network["projection"] + network["shift"])
off = np.abs(gram - f.T @ f - 0.1 * np.eye(128)).max() / gram.max()
assert off < 1e-5, f"expected f.T @ f + 0.1 * identity; the largest difference is {off:.1e} of its largest entry."
off = np.abs(moment - f.T @ view_targets).max() / np.abs(moment).max()
assert off < 1e-5, f"expected f.T @ y; the largest difference is {off:.1e} of its largest entry."
planned = plan(normal_equations, network, views, view_targets, 0.1).temporaries
assert planned <= 600_000, f"expected at most 600,000 bytes of temporaries; the compiler plans {planned:,}."
print("Task 1: the visible asserts pass. Hidden ones use other rows, and look at the plan again.")

# %% [markdown]
# The readout that these equations give:


# %% nbgrader={"grade": false, "grade_id": "given_readout", "locked": true, "schema_version": 3, "solution": false, "task": false}
def readout(gram, moment):
    return {"w": np.linalg.solve(gram, moment).astype("float32"), "b": np.float32(0)}


# %% nbgrader={"grade": true, "grade_id": "test_readout", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
network |= readout(gram, moment)
right = np.mean(np.sign(f[:1797] @ network["w"]) == odd)
assert right > 0.9, f"expected over 0.9 of the digits told odd from even; got {right:.2f}."
print("over 0.9 of the digits told odd from even:", bool(right > 0.9))

# %% [markdown]
# ## Task 2 · spread
#
# *10 minutes, the heart of the lab.* How sure is the network when cells fail? `spread(network, x, keys)` returns the mean and the
# variance of `noisy_score(network, x, key)` over all `keys`, each of shape `(n,)`. The variance divides by the number of keys
# minus 1. For 64 rows and 2 to 101 keys, any number of them, your program may plan **1.2 MB of temporaries**; a wide `vmap` plans
# about 6 MB. Every key counts once.
#
# Look back at [Fan out, then reduce](../course/08_memory/08b_device_memory.ipynb#Fan-out,-then-reduce).

# %% [markdown]
# <details><summary>Two ways</summary>
#
# `jax.lax.map(function, keys, batch_size=8)` computes in chunks and stacks what comes out: 101 scores for each row, which is
# little. Or `jax.lax.scan` over the keys with a running mean and a running sum of squared distances (Welford), which stacks
# nothing. A Python loop is unrolled, and plans like the wide `vmap`.
#
# </details>
#
# <details><summary>If the variance is wrong where the scores are large</summary>
#
# Mean of squares minus square of the mean: for scores near 300 that is 90000 − 90000, and float32 has seven digits.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "spread", "locked": false, "schema_version": 3, "solution": true, "task": false}
def spread(network, x, keys):
    """Mean and variance over the keys of each row's noisy score: (n,) and (n,)."""

    ### BEGIN SOLUTION
    def add(running, key):
        count, mean, squares = running
        score = noisy_score(network, x, key)
        distance = score - mean
        mean = mean + distance / (count + 1)
        return (count + 1, mean, squares + distance * (score - mean)), None

    zeros = jnp.zeros(x.shape[0])
    (count, mean, squares), _ = jax.lax.scan(add, (jnp.float32(0), zeros, zeros), keys)
    return mean, squares / (count - 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_spread", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
keys = jax.random.split(jax.random.key(8), 101)
mean, variance = (np.asarray(part) for part in jax.jit(spread)(network, cells[:64], keys))
all_scores = np.asarray(jax.jit(jax.vmap(noisy_score, in_axes=(None, None, 0)))(network, cells[:64], keys), "float64")
off = np.abs(mean - all_scores.mean(axis=0)).max()
assert off < 1e-4, f"expected the mean over all 101 keys; the largest difference is {off:.1e}."
ratio = np.median(variance / all_scores.var(axis=0, ddof=1))
assert abs(ratio - 1) < 1e-3, f"expected the variance with 101 - 1; yours is {ratio:.4f} of it."
planned = plan(spread, network, cells[:64], keys).temporaries
assert planned <= 1_200_000, f"expected at most 1,200,000 bytes of temporaries; the compiler plans {planned:,}."
print("Task 2: the visible asserts pass. Hidden ones use larger scores, and fewer keys.")

# %% [markdown]
# ## Task 3 · pack and unpack
#
# *6 minutes.* `pack(scores, threshold)` takes a NumPy array of shape `(h, w)` and returns `bytes`: the mask `scores > threshold`,
# one bit a pixel, compressed. `unpack(packed, shape)` gives the mask back, as a bool array of that shape.
#
# Budget: noise fits into one bit a pixel and 100 bytes, for rows of whole bytes and up to full HD; a few large shapes fit into 1/200 of
# the float32 scores. Any height and width will do.
#
# Look back at [The same masks, three ways](../course/08_memory/08_memory.ipynb#The-same-masks,-three-ways).
#
# <details><summary>If the last columns are wrong</summary>
#
# `np.packbits` fills up to a whole byte: at the end of the array, or of each row with `axis=1`. `np.unpackbits` has a `count` that
# says how many bits are yours.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "given_zlib", "locked": true, "schema_version": 3, "solution": false, "task": false}
import zlib


# %% nbgrader={"grade": false, "grade_id": "pack", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack(scores, threshold):
    """The mask scores > threshold as compressed bits."""
    ### BEGIN SOLUTION
    return zlib.compress(np.packbits(scores > threshold))
    ### END SOLUTION


def unpack(packed, shape):
    """The mask of this shape, bool."""
    ### BEGIN SOLUTION
    bits = np.frombuffer(zlib.decompress(packed), "uint8")
    return np.unpackbits(bits, count=shape[0] * shape[1]).reshape(shape).astype(bool)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_try_pack", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_pack(scores, threshold):
    """(bytes that are kept, the mask that comes back)."""
    scores = np.asarray(scores)
    packed = pack(scores, threshold)
    assert isinstance(packed, bytes), f"expected bytes; got {type(packed).__name__}."
    return len(packed), unpack(packed, scores.shape)


# %% nbgrader={"grade": true, "grade_id": "test_pack", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
up, across = np.mgrid[-1:1:1080j, -1:1:1920j].astype("float32")
disc = 1 - np.hypot(up, across)  # a full-HD frame, above 0.5 inside of a disc
size, mask = try_pack(disc, 0.5)
assert mask.dtype == bool, f"expected bool; got {mask.dtype}."
assert np.array_equal(mask, disc > 0.5), "expected the mask of the disc to come back."
assert size <= disc.nbytes / 200, f"expected at most {disc.nbytes // 200:,} bytes for a disc; got {size:,}."
print(
    f"Task 3: the visible asserts pass. {disc.nbytes:,} bytes of scores; over 1000 times less kept:",
    size * 1000 < disc.nbytes,
)

# %% [markdown]
# ## Task 4 · pack_all
#
# *3 minutes.* `pack_all(stream, threshold)` gets an iterator of frames and returns the list of their packed masks. Each frame is made
# when it is asked for. At no time may you hold more than **8 frames' worth** of bytes.
#
# Look back at [The same masks, three ways](../course/08_memory/08_memory.ipynb#The-same-masks,-three-ways).


# %% nbgrader={"grade": false, "grade_id": "pack_all", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack_all(stream, threshold):
    """The packed mask of every frame, in their order."""
    ### BEGIN SOLUTION
    return [pack(frame, threshold) for frame in stream]
    ### END SOLUTION


# %% [markdown]
# How it is measured: `tracemalloc` knows what NumPy and Python hold, and `jax.live_arrays()` what JAX holds. Both are read each time
# a frame is asked for.

# %% nbgrader={"grade": false, "grade_id": "given_frames", "locked": true, "schema_version": 3, "solution": false, "task": false}
import tracemalloc


def held_bytes():
    """What NumPy, Python and JAX hold at this moment."""
    return tracemalloc.get_traced_memory()[0] + sum(array.nbytes for array in jax.live_arrays())


def frames(seed, count, shape, held):
    """Random frames, one at a time. What is held when each is asked for goes to the list `held`."""
    drawn = np.random.default_rng(seed)
    for _ in range(count):
        held.append(held_bytes())
        yield drawn.random(shape, "float32")


# %% nbgrader={"grade": false, "grade_id": "given_try_stream", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_stream(seed, count, threshold, shape=(96, 128)):
    """(most frames' worth of bytes held, the masks that come back)."""
    pack_all(frames(seed, 2, shape, []), threshold)  # once before, so that imports and compiles are not counted
    held = []
    tracemalloc.start()
    try:
        packed = pack_all(frames(seed, count, shape, held), threshold)
    finally:
        tracemalloc.stop()
    return (max(held) - held[0]) / (4 * shape[0] * shape[1]), [unpack(part, shape) for part in packed]


# %% nbgrader={"grade": true, "grade_id": "test_pack_all", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
held, masks = try_stream(seed=3, count=64, threshold=0.9)
same = [np.array_equal(mask, frame > 0.9) for mask, frame in zip(masks, frames(3, 64, (96, 128), []), strict=False)]
assert len(masks) == 64, f"expected 64 masks; got {len(masks)}."
assert all(same), f"expected every mask in its place; number {same.index(False)} is another."
assert held <= 8, f"expected at most 8 frames' worth of bytes; you hold {held:.0f} of 64."
print("Task 4: the visible asserts pass. Hidden ones use other frames.")

# %% [markdown]
# ## Task 5 · MaskCache
#
# *8 minutes.* Decoded masks are wanted again and again. `MaskCache(decode, budget)` keeps some:
#
# - `get(name)` returns the mask; it calls `decode(name)` only if the mask is not kept.
# - After each call, the `nbytes` of all kept masks add up to at most `budget`. Where there is no room, the one that was not
#   asked for **longest** goes first, and no more of them than needed.
# - A mask larger than `budget` is handed out and not kept; the others stay.
# - `forget(name)`: this mask has changed, so the next `get` decodes it anew. A name that is not kept is no error.
#
# Look back at [A cache is a number](../course/08_memory/08_memory.ipynb#A-cache-is-a-number).


# %% nbgrader={"grade": false, "grade_id": "mask_cache", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MaskCache:
    """Decoded masks, at most `budget` bytes of them."""

    ### BEGIN SOLUTION
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept = decode, budget, {}  # a dict keeps its order: oldest first

    def get(self, name):
        mask = self.kept[name] if name in self.kept else self.decode(name)
        self.forget(name)
        if mask.nbytes <= self.budget:
            while sum(kept.nbytes for kept in self.kept.values()) + mask.nbytes > self.budget:
                self.forget(next(iter(self.kept)))
            self.kept[name] = mask
        return mask

    def forget(self, name):
        self.kept.pop(name, None)

    ### END SOLUTION


# %% [markdown]
# It is tried with a `decode` that notes each call, and that knows how many bytes of its masks are still alive. An ask like
# `"!a"` means: mask a has changed, forget it.

# %% nbgrader={"grade": false, "grade_id": "given_shelf", "locked": true, "schema_version": 3, "solution": false, "task": false}
import weakref


class Shelf:
    """Masks on paper, by name, of these sizes in bytes."""

    def __init__(self, sizes):
        self.sizes, self.versions, self.made = sizes, dict.fromkeys(sizes, 0), []

    def mask(self, name):
        drawn = np.random.default_rng([self.versions[name], *name.encode()])
        return drawn.random((1, self.sizes[name])) < 0.5

    def decode(self, name):
        mask = self.mask(name)
        self.made.append(weakref.ref(mask))
        return mask

    def alive_bytes(self):
        return sum(mask().nbytes for mask in self.made if mask() is not None)


# %% nbgrader={"grade": false, "grade_id": "given_try_cache", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_cache(sizes, asks, budget):
    """For each ask without "!": (decoded now?, the right mask?, bytes of decoded masks that are alive after it)."""
    shelf, seen = Shelf(sizes), []
    cache = MaskCache(shelf.decode, budget)
    for ask in asks:
        name, before = ask.lstrip("!"), len(shelf.made)
        if ask.startswith("!"):
            shelf.versions[name] += 1
            cache.forget(name)
        else:
            right = bool(np.array_equal(cache.get(name), shelf.mask(name)))
            seen.append((len(shelf.made) > before, right, shelf.alive_bytes()))
    return seen


# %% nbgrader={"grade": true, "grade_id": "test_mask_cache", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
sizes = {"a": 400, "b": 300, "c": 250}
seen = try_cache(sizes, ["a", "b", "a", "c", "a", "b"], budget=700)
decoded, right, alive = zip(*seen, strict=True)
assert all(right), f"expected the mask that was asked for; got another at ask {right.index(False)}."
expected = (True, True, False, True, False, True)
assert decoded == expected, f"expected decodes {expected}; got {decoded}. When c came, b was not asked for longest."
assert max(alive) <= 700, f"expected at most 700 bytes alive; got {alive}."
print("Task 5: the visible asserts pass. Hidden ones ask longer, for masks that are too large or have changed.")

# %% [markdown]
# ## Task 6 · largest_chunk
#
# *7 minutes.* Which chunk is the largest that fits? The plan is a first guess; a peak is the proof. `start()` starts a process,
# `process.run(chunk)` runs the job in it, and then:
#
# - `process.returncode` is `None` if the process lives, `-9` if the machine killed it;
# - `process.peak_mb` is the highest memory that was *seen* of this process, since its start.
#
# `largest_chunk(start, n, budget_mb)` returns the largest chunk of 1 to `n` that survives with a peak of at most `budget_mb`. A larger
# chunk never needs less; more is not known. A start costs seconds: you have 20 for an `n` of up to 300. If not even 1 fits, raise
# `ValueError`.
#
# Look back at [Size by the spike](../course/08_memory/08_memory.ipynb#Size-by-the-spike).

# %% [markdown]
# <details><summary>If a chunk that was killed seems to fit</summary>
#
# A process is killed between two looks at it, so its highest seen memory may be far below what killed it. Ask for the return code
# first.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "largest_chunk", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_chunk(start, n, budget_mb):
    """The largest chunk that lives within the budget."""

    ### BEGIN SOLUTION
    def fits(chunk):
        process = start()
        process.run(chunk)
        return process.returncode is None and process.peak_mb <= budget_mb

    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if low == 0:
        raise ValueError(f"not even a chunk of 1 fits into {budget_mb} MB")
    return low
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_process", "locked": true, "schema_version": 3, "solution": false, "task": false}
class PaperProcess:
    """A process on paper. Over the machine's cap it is killed, and what was seen of it is a part of the cap."""

    def __init__(self, needs, cap_mb, seen):
        self.needs, self.cap_mb, self.seen = needs, cap_mb, seen
        self.peak_mb, self.returncode = 0, None

    def run(self, chunk):
        if self.returncode is not None:
            raise ProcessLookupError("this process was killed: start another")
        killed = self.needs[chunk - 1] > self.cap_mb
        self.peak_mb = max(self.peak_mb, self.cap_mb * self.seen if killed else self.needs[chunk - 1])
        self.returncode = -9 if killed else None


# %% nbgrader={"grade": false, "grade_id": "given_try_chunk", "locked": true, "schema_version": 3, "solution": false, "task": false}
def try_chunk(needs, budget_mb, cap_mb, seen=0.6):
    """(the chunk, processes started), where chunk k needs needs[k - 1] MB."""
    started = []

    def start():
        started.append(PaperProcess(needs, cap_mb, seen))
        return started[-1]

    return largest_chunk(start, len(needs), budget_mb), len(started)


# %% nbgrader={"grade": true, "grade_id": "test_largest_chunk", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
needs = [300 + 7 * chunk + 40 * (chunk > 32) for chunk in range(1, 201)]
chunk, starts = try_chunk(needs, budget_mb=800, cap_mb=1000)
assert chunk == 65, f"expected 65, which needs 795 of 800 MB; got {chunk}."
assert starts <= 20, f"expected at most 20 processes; got {starts}."
chunk, _ = try_chunk(needs, budget_mb=2000, cap_mb=1000)
assert chunk == 94, f"expected 94: what needs over 1000 MB is killed; got {chunk}."
print("Task 6: the visible asserts pass. Hidden ones use other jobs, and one that never fits.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - Values against the same formulas in float64, for other numbers of rows and keys, with scores in the hundreds.
# - The bytes of temporaries that the compiler plans for your programs, in a process without your Python.
# - Masks of odd heights and widths, noise and shapes, and pixels exactly at the threshold; bytes held while a stream is packed.
# - Long random series of asks: which are decoded, which bytes are alive.
# - Jobs whose needs jump, that nearly fit, that are killed, and that never fit.

# %% [markdown]
# ## Going further
#
# - Draw the plans: `from traceonce import chart`, then `chart(plan.compare(...))` with a wide `vmap`, `lax.map` at chunks of 1, 8 and 101,
#   and your `spread`.
# - Give `spread` a chunk: a scan over chunks that merges mean and squares of each. What do 8 keys a turn plan?
# - Write a `start` for `largest_chunk` with real processes: `traceonce.sandbox.run_capped` kills at a cap, and knows what it saw.
# - What would float32 sums of a billion rows do to `normal_equations`? Compare block sums in float32 with one long sum.
