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
# # 02 · Randomness is data with an owner
#
# A PyTorch draw asks a generator, and the generator moves on by itself. A JAX draw is a function of a **key**, and nothing
# moves. After this lesson you can say who owns each key of a training step, prove it, and restart a run in the middle of
# its noise.
#
# About 45 minutes. You need lesson 01.

# %% [markdown]
# ## Question
#
# Three people wrote a training step with dropout on its inputs: one the loop, one the step, one the dropout function.
# Every input is kept with probability 0.75 and then divided by 0.75. The data are the four rows of lesson 01.

# %%
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import predict

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])
zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}


# %%
def drop(key, x):
    mask = jax.random.bernoulli(key, 0.75, x.shape)
    return jnp.where(mask, x / 0.75, 0.0), mask


def loss_and_mask(params, key, x, y):
    inputs, mask = drop(key, x)
    return jnp.mean((inputs @ params["w"] + params["b"] - y) ** 2), mask


@jax.jit
def step(params, key, x, y):
    key, drop_key = jax.random.split(key)
    grads, mask = jax.grad(loss_and_mask, has_aux=True)(params, drop_key, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), mask


# %%
key = jax.random.key(7, impl="threefry2x32")
params = zero
for i in range(3):
    params, mask = step(params, key, x, y)
    print(f"step {i}: mask {mask.astype(int).tolist()}")

# %% [markdown]
# The same mask, three times: this model will never see the second feature of row 0. All three authors say that their part
# is right. Say whom you suspect; you will be able to *prove* it in a quarter of an hour.

# %%
suspects = ["the loop", "the step", "the dropout function"]
guess_culprit = predict("02-Q1", "Whose part makes the mask repeat?", suspects)

# %% [markdown]
# ## Before you run
#
# `jax.random.key(7)` makes a key from a seed. The name of the implementation is optional; this lesson gives it so that
# the printed numbers are the same everywhere. In PyTorch, two calls of `torch.randn(())` give two numbers.

# %%
question = "jax.random.normal(key) is called twice. What do the two calls give?"
guess = predict("02-K1", question, ["two different numbers", "the same number twice", "an error"])

# %% [markdown]
# ## A key is a value

# %% claims=["K1"]
draws = [round(float(jax.random.normal(key)), 4) for _ in range(2)]
print(draws)
guess.reveal("the same number twice" if draws[0] == draws[1] else "two different numbers")

# %% [markdown]
# A key is a small array of integers, and `normal` computes a number from them. No call changes the key, as no call can
# change any array (lesson 01). So *you* move the stream on: `split` computes new keys, its **children**. What a key is
# can be read with `key_data`.


# %%
def words(key):
    """The data of one key, as text: two keys are the same key if their words are."""
    return " ".join(f"{word:08x}" for word in jax.random.key_data(key).tolist())


def drawn(key):
    return round(float(jax.random.normal(key)), 4)


# %% claims=["K1"]
left, right = jax.random.split(key)
for name, each in {"key": key, "left": left, "right": right}.items():
    print(f"{name:6} {words(each)}  draws {drawn(each)}")
for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
    other = jax.random.key(7, impl=impl)
    print(f"{other.dtype!s:10} {jax.random.key_impl(other)}")

# %% [markdown]
# Three keys, three draws. The dtype names the **implementation**, the algorithm that turns keys into numbers. `fry` is
# threefry, the default; the others come at the end. In older code you meet `jax.random.PRNGKey(7)`: the same words as a
# plain integer array, on which arithmetic goes through.

# %% claims=["K1"]
raw = jax.random.PRNGKey(7)
print(raw.dtype, raw.tolist(), "plus one:", (raw + 1).tolist())
try:
    key + 1
except TypeError as error:
    print("TypeError:", error)

# %% [markdown]
# ### Equal draws prove nothing
#
# A test for reuse seems easy: draw a mask from each of two keys and demand that they differ. Take masks of one bit, each
# True with probability 0.5, from `left` and `right`. These keys are different, you have just seen their words.

# %%
question = "One bit from left, one bit from right. What will such a test say?"
guess = predict("02-K2", question, ["the bits differ", "the bits agree"])

# %% claims=["K2"]
bits = [bool(jax.random.bernoulli(each, 0.5)) for each in (left, right)]
print(bits, "same key:", words(left) == words(right))
guess.reveal("the bits agree" if bits[0] == bits[1] else "the bits differ")

# %% [markdown]
# The test calls two good keys a reuse. Two such bits agree with probability 0.5² + 0.5² = 0.5, so it fails for half of
# all seeds. Count it over a thousand pairs of children.


# %% claims=["K2"]
def bits_agree(pair):
    first, second = jax.vmap(jax.random.bernoulli)(pair)
    return first == second


pairs = jax.random.split(key, (1000, 2))
print("agree:", int(jax.vmap(bits_agree)(pairs).sum()), "of 1000 pairs")
print("different keys:", len({words(each) for each in pairs.ravel()}), "of 2000")

# %% [markdown]
# A longer mask makes an accident rarer and the test slower, and a mask says nothing about *who* passed which key. So
# compare **derivations**: which key came in, by its words. That is the proof for the opening question. The step is
# unchanged; a wrapper notes what it is given.

# %% claims=["K2"]
came_in = []


def noting(params, key, x, y):
    came_in.append(words(key))
    return step(params, key, x, y)


params = zero
for _ in range(3):
    params, mask = noting(params, key, x, y)
print("keys that the step was given:", came_in)
guess_culprit.reveal("the loop" if len(set(came_in)) == 1 else "the step")

# %% [markdown]
# The step got one key three times and gave one answer three times, which is its contract. The loop owns `key` and handed
# it out three times. (You may as well let the step return the next key; then the fault would be not to return it. What
# matters is that somebody is named.) The repair comes below.

# %% [markdown]
# ### One by one is another stream
#
# You need three numbers. You can split the key into three and draw one number from each, or draw three at once. A NumPy
# generator gives the same numbers both ways: `rng.normal()` three times is `rng.normal(size=3)`. Here?

# %%
question = "Three draws from three children of key 7, or one draw of shape (3,) from key 7?"
guess = predict("02-K3", question, ["the same numbers", "other numbers"])

# %% claims=["K3"]
children = jax.random.split(key, 3)
one_by_one = [drawn(child) for child in children]
at_once = np.asarray(jax.random.normal(key, (3,)), "float64").round(4).tolist()
print("one by one:", one_by_one)
print("at once:   ", at_once)
guess.reveal("the same numbers" if one_by_one == at_once else "other numbers")
one, three = np.random.default_rng(7), np.random.default_rng(7)
print("NumPy agrees with itself:", [one.normal() for _ in range(3)] == three.normal(size=3).tolist())

# %% [markdown]
# Both are good noise, and nobody promises that they agree. Somebody took this for [a fault of
# `vmap`](https://github.com/patrick-kidger/equinox/pull/181) in 2022. It is none: `vmap` over keys equals the loop over
# the *same* keys. Compare like with like.

# %% claims=["K3"]
mapped = np.asarray(jax.vmap(jax.random.normal)(children), "float64").round(4).tolist()
print("vmap over the children:", mapped, " equals the loop:", mapped == one_by_one)

# %% [markdown]
# ## One parent, one owner
#
# A key is **consumed** when something is drawn from it or when it is split. Each key should be consumed once. To see who
# consumes what, draw the tree: every key stands under the key that it was made from. Equal words are marked in text and
# with a broken frame.


# %%
class KeyTree:
    """Keys by name, each under its parent; `add` takes the depth, a name and the key, and returns the key."""

    def __init__(self):
        self.rows, self.seen = [], {}

    def add(self, depth, name, key):
        first = self.seen.setdefault(words(key), name)
        self.rows.append((depth, f"{name}: {words(key)}", "" if first == name else f"same key as {first}"))
        return key

    def __repr__(self):
        return "\n".join(f"{'    ' * depth}{text}  {note}".rstrip() for depth, text, note in self.rows)

    def _repr_mimebundle_(self, **_):
        return {"text/plain": repr(self), "image/svg+xml": picture(self)}


# %%
from html import escape


def picture(tree, pitch=36, step=44, width=330):
    """The tree as SVG; its description is the text form."""
    height, parents = 16 + pitch * len(tree.rows), {}
    shapes = [f'<rect width="700" height="{height}" stroke="none"/>']
    for number, (depth, text, note) in enumerate(tree.rows):
        left, top = 10 + step * depth, 8 + pitch * number
        if depth:
            shapes.append(f'<path d="M{left - 26} {parents[depth - 1] + 26}V{top + 13}H{left}" fill="none"/>')
        dash = ' stroke-width="2.5" stroke-dasharray="6 4"' if note else ""
        shapes.append(f'<rect x="{left}" y="{top}" width="{width}" height="26" rx="5"{dash}/>')
        for place, said in ((left + 9, text), (left + width + 9, note)):
            shapes.append(f'<text x="{place}" y="{top + 18}" fill="#1f2328" stroke="none">{escape(said)}</text>')
        parents[depth] = top
    about = f"<title>Key tree</title><desc>{escape(repr(tree))}</desc>"
    group = f'<g fill="#ffffff" stroke="#1f2328" font-family="monospace" font-size="13">{"".join(shapes)}</g>'
    size = f'viewBox="0 0 700 {height}" width="700" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{about}{group}</svg>'


# %% [markdown]
# Now two helpers of one step: augmentation adds noise, dropout masks. Each author was told never to draw from the key
# that comes in, so each splits first. The step gives both the same key.


# %%
def noise_key_of(key):
    _, own = jax.random.split(key)
    return own


def mask_key_of(key):
    _, own = jax.random.split(key)
    return own


# %%
question = "Both helpers split the key that they are given. Are their own keys different?"
guess = predict("02-K4", question, ["different keys", "the same key"])

# %% claims=["K4"]
tree = KeyTree()
tree.add(0, "step", key)
noise = tree.add(1, "noise", noise_key_of(key))
masks = tree.add(1, "mask", mask_key_of(key))
guess.reveal("the same key" if words(noise) == words(masks) else "different keys")
tree

# %% [markdown]
# `split` is a function too. Twice the same parent gives twice the same children. The rule "split before you draw" was
# kept, and it did not help: **the parent had two consumers**. What this does to the training you see in *Break it*. The
# owner of the parent has to split, once, and give each helper a child.

# %% [markdown]
# Another way to make a child is `fold_in(key, n)`, with a number of your choice. One helper splits and one folds: are
# they apart?

# %%
question = "split(key)[1] and fold_in(key, 1): how are they related?"
guess = predict("02-K4b", question, ["different keys", "the same key"])

# %% claims=["K4"]
folded = [words(jax.random.fold_in(key, n)) for n in range(3)]
parted = [words(child) for child in jax.random.split(key, 3)]
print("fold_in 0, 1, 2:", folded)
print("split into 3:   ", parted)
guess.reveal("the same key" if folded[1] == parted[1] else "different keys")

# %% [markdown]
# In the default implementation child *n* of a split **is** the fold of *n*; that is
# [on purpose](https://github.com/jax-ml/jax/pull/13341). So `split` and `fold_in` are two spellings of one tree. A parent
# that was split must not be folded, and a number must not be folded in twice.

# %% [markdown]
# ### Drawing from a parent
#
# Half a rule is worse than none: draw from the key, *then* split it ([2021](https://github.com/blackjax-devs/blackjax/issues/53)).
# Each of two calls draws two numbers. How many of the four are different?


# %%
def draw_then_split(key):
    first = drawn(key)
    key, _ = jax.random.split(key)
    return key, [first, drawn(key)]


def split_then_draw(key):
    key, first, second = jax.random.split(key, 3)
    return key, [drawn(first), drawn(second)]


# %%
guess = predict("02-K4c", "Two calls of draw_then_split: how many different numbers?", [2, 3, 4])

# %% claims=["K4"]
counts = {}
for draw in (draw_then_split, split_then_draw):
    carried, first = draw(key)
    _, second = draw(carried)
    counts[draw.__name__] = len(set(first + second))
    print(draw.__name__, first + second)
guess.reveal(counts["draw_then_split"])

# %% [markdown]
# The last number of one call is the first of the next: the key that is carried had been drawn from. Tutorials have the
# same fault, and a second one: they [seed again inside the loop](https://github.com/AakashKumarNain/TF_JAX_tutorials/issues/4).

# %% claims=["K1"]
again = [drawn(jax.random.key(0)) for _ in range(3)]
once, carried = [], jax.random.key(0)
for _ in range(3):
    carried, child = jax.random.split(carried)
    once.append(drawn(child))
print("different draws of three: seeded in the loop", len(set(again)), " seeded once", len(set(once)))

# %% [markdown]
# ## An identity, not a position
#
# Each row of a batch should have noise of its own. Whose is it: the row's, or the place's in the batch? `split` into as
# many keys as there are rows gives one to each *place*. `fold_in` of a stable number gives one to each *row*.


# %%
def by_position(step_key, ids):
    return jax.random.split(step_key, len(ids))


def by_identity(step_key, ids):
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(step_key, ids)


def noise_of(keys, ids):
    """For each example, by its id, the noise that it got."""
    return {int(i): drawn(key) for i, key in zip(ids, keys, strict=True)}


batches = {
    "another order": jnp.array([2, 0, 3, 1]),
    "first two missing": jnp.array([2, 3]),
    "last two missing": jnp.array([0, 1]),
}

# %%
question = "Same step key, with keys by position. In how many of the three batches does each row keep its noise?"
guess = predict("02-K5", question, [0, 1, 2, 3])

# %% claims=["K5"]
kept = {by_position: 0, by_identity: 0}
for how in kept:
    before = noise_of(how(key, jnp.arange(4)), jnp.arange(4))
    for name, ids in batches.items():
        same = noise_of(how(key, ids), ids).items() <= before.items()
        kept[how] += same
        print(f"{how.__name__:12} {name:18} row keeps its noise: {same}")
guess.reveal(kept[by_position])

# %% [markdown]
# With keys by position a shuffle deals the noise anew, so no run can be compared row by row. (A batch that is cut at its
# end is safe: a child does not depend on how many there are.) It is not the fault of `split`. Split for *all* examples
# and let each own its child:

# %% claims=["K5"]
owned = jax.random.split(key, 4)
for name, ids in batches.items():
    print(f"{name:18}", noise_of(owned[ids], ids) == noise_of(by_identity(key, ids), ids))

# %% [markdown]
# ### Split or fold for each step
#
# "`split` breaks seedability", one hears; only `fold_in` of the step number is right. Libraries have
# [debated it](https://github.com/blackjax-devs/blackjax/pull/656). Measure it. The split stream carries its key; the fold
# stream keeps one key and folds in the step number.


# %%
def split_stream(key, steps, others=()):
    """Words of the key of each step; at the steps in `others` an evaluation takes a child too."""
    found = []
    for i in range(steps):
        if i in others:
            key, _ = jax.random.split(key)
        key, step_key = jax.random.split(key)
        found.append(words(step_key))
    return found, key


def fold_stream(key, first, last, others=()):
    """The same with `fold_in`; evaluations count from 1000."""
    found = {i: words(jax.random.fold_in(key, i)) for i in [*range(first, last), *(1000 + i for i in others)]}
    return [found[i] for i in range(first, last)]


# %%
question = "One seed, two runs with split for each step. Are the streams the same?"
guess = predict("02-K5b", question, ["the same", "not the same"])

# %% claims=["K5"]
(split, _), fold = split_stream(key, 6), fold_stream(key, 0, 6)
(start, carried), evaluated = split_stream(key, 3), split_stream(key, 6, others=[2])[0]
rows = {
    "the same seed again": (split_stream(key, 6)[0] == split, fold_stream(key, 0, 6) == fold),
    "an evaluation at step 2": (evaluated == split, fold_stream(key, 0, 6, others=[2]) == fold),
    "step 3 on, from the seed": (start == split[3:], fold_stream(key, 3, 6) == fold[3:]),
    "step 3 on, key was saved": (split_stream(carried, 3)[0] == split[3:], "needs no save"),
}
for name, (split_holds, fold_holds) in rows.items():
    print(f"{name:25} split {split_holds!s:6} fold_in {fold_holds}")
guess.reveal("the same" if rows["the same seed again"][0] else "not the same")

# %% [markdown]
# Split is as seedable as any function. What it lacks is an *address*: a step's key depends on all splits before it. An
# evaluation that is switched on shifts every later step, and a restart needs the carried key. `fold_in` gives step 3 its
# key directly. Its price: you must never fold the same number twice, so a step counter must not start anew each epoch.

# %% [markdown]
# ### Several processes
#
# Lesson 11 has several processes, each with its own part of the data. An index within the part is no identity: it repeats
# in each process. Two processes, four examples each; how many keys are different?


# %% claims=["K5"]
def count_keys(identity):
    numbers = [identity(process, index) for process in (0, 1) for index in range(4)]
    keys = [jax.random.fold_in(jax.random.fold_in(key, first), second) for first, second in numbers]
    return len({words(each) for each in keys})


print("index alone:       ", count_keys(lambda process, index: (0, index)), "of 8")
print("process + index:   ", count_keys(lambda process, index: (0, process + index)), "of 8")
print("process, then index:", count_keys(lambda process, index: (process, index)), "of 8")

# %% [markdown]
# And no seed from the clock. Two processes may start in the same second, and such a run cannot be repeated. A seed also
# keeps its lower 32 bits only, unless 64-bit types are switched on: in nanoseconds, that is a clock of 4.3 seconds.

# %% claims=["K1"]
print("seed 7:        ", words(jax.random.key(7)))
print("seed 7 + 2**32:", words(jax.random.key(7 + 2**32)))

# %% [markdown]
# ## The stream goes on
#
# A run stops after step 2 and is to go on as if it had not. Its key is carried by split. Here are two ways to save it: the
# seed, since that is in the config anyway, and the carried key.

# %%
choices = ["that of step 0", "that of step 3", "noise that the run had nowhere"]
guess = predict("02-K6", "Restarted from the seed: which noise has the first step after the restart?", choices)

# %% claims=["K6"]
uninterrupted, _ = split_stream(key, 6)
_, carried = split_stream(key, 3)
from_seed, _ = split_stream(jax.random.key(7, impl="threefry2x32"), 3)
place = uninterrupted.index(from_seed[0]) if from_seed[0] in uninterrupted else None
guess.reveal({0: choices[0], 3: choices[1], None: choices[2]}[place])

# %% [markdown]
# Steps 3 to 5 repeat the noise of steps 0 to 2, and nothing raises. A large project
# [found out in 2023](https://github.com/AI-Hypercomputer/maxtext/issues/276) that its key was in no checkpoint. So save the
# key. NumPy refuses it as it is:

# %% claims=["K6"]
from io import BytesIO

try:
    np.savez(BytesIO(), key=carried)
except TypeError as error:
    print("TypeError:", str(error).split(". ")[1])

# %% [markdown]
# Two things make a key: its data and the name of its implementation. Both are plain, and both go into the file.


# %% claims=["K6"]
def save(file, key):
    np.savez(file, data=np.asarray(jax.random.key_data(key)), impl=str(jax.random.key_impl(key)))


def load(file):
    stored = np.load(file)
    return jax.random.wrap_key_data(jnp.asarray(stored["data"]), impl=str(stored["impl"]))


file = BytesIO()
save(file, carried)
file.seek(0)
resumed, _ = split_stream(load(file), 3)
print("steps 3 to 5 as without the stop:", resumed == uninterrupted[3:])

# %% [markdown]
# Is the name needed? The data of `rbg` and `unsafe_rbg` have the same shape, so a wrong name raises nothing. Worse: the
# first draw is right.

# %% claims=["K6"]
true = jax.random.key(7, impl="rbg")
wrong = jax.random.wrap_key_data(jax.random.key_data(true), impl="unsafe_rbg")
print("first draw equal:", drawn(true) == drawn(wrong))
print("children equal:  ", [words(k) for k in jax.random.split(true)] == [words(k) for k in jax.random.split(wrong)])
try:
    jax.random.wrap_key_data(jax.random.key_data(true), impl="threefry2x32")
except TypeError:
    print("threefry2x32 refuses data of another shape")

# %% [markdown]
# ## What a checker sees
#
# JAX can watch for reuse: inside `jax.debug_key_reuse(True)`, consuming a typed key twice raises a `KeyReuseError`. It is
# off by default. Here are eight reuses; each of them uses one stream of numbers twice.


# %%
def in_scan(key):
    return jax.lax.scan(lambda total, _: (total + jax.random.normal(key), None), 0.0, length=3)


normal, fold_in, raw = jax.random.normal, jax.random.fold_in, jax.random.PRNGKey(7)
reuses = {
    "drawn twice": lambda k: (normal(k), normal(k)),
    "drawn, then split": lambda k: (normal(k), jax.random.split(k)),
    "from outside, in a scan": in_scan,
    "a raw PRNGKey, drawn twice": lambda k: (normal(raw), normal(raw)),
    "the same seed twice": lambda k: (normal(jax.random.key(3)), normal(jax.random.key(3))),
    "the same number folded twice": lambda k: (normal(fold_in(k, 1)), normal(fold_in(k, 1))),
    "split, and folded": lambda k: (normal(jax.random.split(k)[1]), normal(fold_in(k, 1))),
    "one key for all rows of a vmap": lambda k: jax.vmap(lambda row: row + normal(k))(x),
}

# %%
guess = predict("02-K7", "How many of the eight does the checker find?", [0, 3, 5, 8])

# %% claims=["K7"]
found = {}
for name, reuse in reuses.items():
    try:
        with jax.debug_key_reuse(True):
            reuse(jax.random.key(7))
        found[name] = False
    except jax.errors.KeyReuseError:
        found[name] = True
    print(f"{name:32} {'found' if found[name] else 'silent'}")
guess.reveal(sum(found.values()))

# %% [markdown]
# What it reports is true, and what it misses is a lot. `fold_in` counts as no use at all,
# [deliberately](https://github.com/jax-ml/jax/pull/19520): folding different numbers into one key is right, and the checker
# cannot tell the numbers. A seed that comes again is a new key to it. One key for all rows may even be meant.
#
# So run it in a test, and compare words where it is blind.

# %% claims=["K7"]
folds = [fold_in(key, i) for i in (0, 1, 2, 1)]
print("keys:", len(folds), " different:", len({words(each) for each in folds}))

# %% [markdown]
# ### Other implementations
#
# `rbg` takes its numbers from a generator of the compiler's, for accelerators on which threefry is slow. One by one its
# keys work as before. Under `vmap` they do not. Two keys draw in one `vmap`; then the *second* is replaced by another.
# Does the second row change?


# %%
def second_row_changes(impl):
    first, second, other = jax.random.split(jax.random.key(7, impl=impl), 3)
    draw = jax.vmap(lambda k: jax.random.bits(k, (4,)))
    before, after = draw(jnp.stack([first, second])), draw(jnp.stack([first, other]))
    return bool((before[1] != after[1]).any())


guess = predict("02-K8", "With rbg, the second key is replaced. Does the second row change?", ["yes", "no"])

# %% claims=["K8"]
changes = {impl: second_row_changes(impl) for impl in ("threefry2x32", "rbg", "unsafe_rbg")}
print("second row changes:", changes)
guess.reveal("yes" if changes["rbg"] else "no")

# %% [markdown]
# With `rbg`, `vmap` draws everything from the **first** key of the batch; the others are not looked at. That is
# [documented and meant](https://github.com/jax-ml/jax/issues/19085), for speed. But then noise that belongs to an example
# does not exist: it depends on who comes first. A loop over the keys, `lax.map`, keeps each key's draw.


# %% claims=["K8"]
def rows_equal_the_loop(impl):
    keys = jax.random.split(jax.random.key(7, impl=impl), 4)
    loop = jnp.stack([jax.random.bits(k, (3,)) for k in keys])
    ways = {"vmap": jax.vmap(lambda k: jax.random.bits(k, (3,)))(keys)}
    ways["lax.map"] = jax.lax.map(lambda k: jax.random.bits(k, (3,)), keys)
    return {name: int((rows == loop).all(axis=1).sum()) for name, rows in ways.items()}


for impl in ("threefry2x32", "rbg"):
    print(f"{impl:13} rows of 4 that equal the loop: {rows_equal_the_loop(impl)}")

# %% [markdown]
# `unsafe_rbg` gives up more: even the keys that `fold_in` makes are others under `vmap`, and `fold_in` does not care
# [in which order](https://github.com/jax-ml/jax/issues/21405) two numbers are folded in. So process 1, example 2 is
# process 2, example 1.

# %% claims=["K8"]
for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
    base = jax.random.key(7, impl=impl)
    one_two, two_one = fold_in(fold_in(base, 1), 2), fold_in(fold_in(base, 2), 1)
    mapped = [words(each) for each in by_identity(base, jnp.arange(4))]
    vmap_agrees = mapped == [words(fold_in(base, i)) for i in range(4)]
    print(f"{impl:13} (1, 2) is (2, 1): {words(one_two) == words(two_one)!s:6} vmap folds as the loop: {vmap_agrees}")

# %% [markdown]
# ### A generator that moves by itself
#
# *Optional.* `jax.experimental.random` has a generator with a hidden counter, in the manner of NumPy. It is a base key and
# a `Ref` (lesson 01): draw *n* uses `fold_in(base, n)`. It inherits what a `Ref` cannot do. Eight tries:


# %%
from jax.experimental.random import stateful_rng

rng = stateful_rng(7, impl="threefry2x32")
own_key = rng.key()
tries = {
    "drawn from inside jit": lambda: jax.jit(lambda: rng.normal())(),
    "returned from jit": lambda: jax.jit(lambda rng: (rng.normal(), rng))(rng),
    "carried by a scan": lambda: jax.lax.scan(lambda rng, _: (rng, rng.normal()), rng, length=3),
    "closed over by a scan": lambda: jax.lax.scan(lambda c, _: (c, rng.normal()), 0, length=3),
    "under grad": lambda: jax.grad(lambda w: w * rng.normal())(1.0),
    "under checkpoint": lambda: jax.checkpoint(lambda w: w * rng.normal())(1.0),
    "under grad of checkpoint": lambda: jax.grad(jax.checkpoint(lambda w: w * rng.normal()))(1.0),
    "a key from it, under that": lambda: jax.grad(jax.checkpoint(lambda w: w * normal(own_key)))(1.0),
}

# %% claims=["K9"]
for name, attempt in tries.items():
    try:
        attempt()
        print(f"{name:28} works")
    except (TypeError, ValueError) as error:
        print(f"{name:28} {type(error).__name__}")

# %% [markdown]
# It cannot leave a transformed function or be carried, as its documentation says. The documentation excludes `checkpoint`
# as well: run forward it works here, and what fails is differentiating, with or without `checkpoint`. A plain key, taken
# from it beforehand, passes. This course stays with plain keys.

# %% [markdown]
# ## Break it
#
# Back to the two helpers with one parent. Whoever runs the step sees noise, and sees a mask, and both look random. Draw
# 250 batches of the four rows as that step would, and look at the noise of the inputs that are *kept*.


# %%
def corrupted(noise_key, mask_key):
    return jax.random.normal(noise_key, (4, 2)), jax.random.bernoulli(mask_key, 0.75, (4, 2))


def one_parent(step_key):
    return corrupted(noise_key_of(step_key), mask_key_of(step_key))


step_keys = jax.vmap(fold_in, in_axes=(None, 0))(key, jnp.arange(250))

# %%
question = "The noise has mean 0. What is its mean over the inputs that the mask keeps?"
guess = predict("02-B1", question, ["-0.4", "0.0", "0.4"])

# %%
noise, kept = jax.vmap(one_parent)(step_keys)
print("kept:", int(kept.sum()), "of", kept.size)
print("all that was dropped is larger than all that was kept:", bool(noise[~kept].min() > noise[kept].max()))
guess.reveal(f"{noise[kept].mean():.1f}")

# %% [markdown]
# This is not noise and a mask, it is one draw used twice:
#
# 1. Both functions start from the same random bits, because the key and the shape are the same.
# 2. `bernoulli` keeps where the bits are a small number; `normal` makes small numbers into small values.
# 3. So dropout removed exactly the inputs with the *largest* noise, at every step, and shifted what is left.
#
# An example of JAX itself had this fault in 2020, in noise that was
# [to protect privacy](https://github.com/jax-ml/jax/pull/3646).

# %% [markdown]
# ## Repair it
#
# One owner for each parent. The **state** owns the run's key and its step number; the **step** owns the step key and
# splits it once, by purpose; each helper is given a key that nobody else has, and draws from it.


# %%
def keys_of(state):
    step_key = fold_in(state["key"], state["step"])
    noise_key, mask_key = jax.random.split(step_key)
    return step_key, noise_key, mask_key


noise, kept = jax.vmap(corrupted)(*jax.vmap(lambda i: keys_of({"key": key, "step": i})[1:])(jnp.arange(250)))
print("mean noise of the kept inputs is 0 to one digit:", abs(round(float(noise[kept].mean()), 1)) == 0)

# %%
tree = KeyTree()
tree.add(0, "run", key)
for i in range(3):
    for depth, name, each in zip((1, 2, 2), ("step", "noise", "mask"), keys_of({"key": key, "step": i}), strict=True):
        tree.add(depth, f"{name} {i}", each)
tree

# %% [markdown]
# No row is marked: ten keys, ten owners. In the whole step the state comes in and goes out, with its step number one
# higher, and the loop has nothing left to hand out twice.


# %%
@jax.jit
def repaired(state, x, y):
    _, noise_key, mask_key = keys_of(state)
    noisy = x + 0.1 * jax.random.normal(noise_key, x.shape)
    grads, mask = jax.grad(loss_and_mask, has_aux=True)(state["params"], mask_key, noisy, y)
    params = jax.tree.map(lambda p, g: p - 0.05 * g, state["params"], grads)
    return {"params": params, "key": state["key"], "step": state["step"] + 1}, mask


state = {"params": zero, "key": key, "step": jnp.int32(0)}
for i in range(3):
    state, mask = repaired(state, x, y)
    print(f"step {i}: mask {mask.astype(int).tolist()}")

# %% [markdown]
# That answers the opening question. The mask repeated because one key was consumed three times; the owner of that key was
# the loop; and the proof was not in the masks, it was in the words of the keys.

# %% [markdown]
# ## In the wild
#
# A layer that draws needs a key on every call. To spare the argument, [somebody stored one in the
# model](https://github.com/patrick-kidger/equinox/issues/498). Equinox's own dropout layer, three steps:


# %%
class Layer(eqx.Module):
    dropout: eqx.nn.Dropout
    key: jax.Array

    def __call__(self, x, key=None):
        return self.dropout(x, key=self.key if key is None else key)


layer = Layer(eqx.nn.Dropout(0.5), key)
apply = eqx.filter_jit(lambda layer, x, key=None: layer(x, key) > 0)

# %%
question = "Three calls of the layer with its stored key: how many different masks of 64 units?"
guess = predict("02-W1", question, [1, 2, 3])

# %%
stored = {tuple(apply(layer, jnp.ones(64)).tolist()) for _ in range(3)}
passed = {tuple(apply(layer, jnp.ones(64), fold_in(key, i)).tolist()) for i in range(3)}
print("stored in the layer:", len(stored), " passed for each call:", len(passed))
guess.reveal(len(stored))

# %% [markdown]
# A key in an attribute, a closure or a global is a key that is consumed at every call. A model may hold what stays the
# same; a key is to be used up.

# %% [markdown]
# **Read a real loop** (10 minutes). Open the training loop of MaxText, after that issue of 2023, at
# [this commit](https://github.com/AI-Hypercomputer/maxtext/blob/002d18cc0d4abdc08b87f957a09e1775c49ac69d/MaxText/train.py).
# Follow `init_rng`, `nextrng` and `dropout_rng`.
#
# 1. Who owns `init_rng`, and what is it used for?
# 2. How does a step get its key, and what is in the checkpoint for it?
# 3. With gradient accumulation a step has several micro-batches. Which key does each of them get?
# 4. Which key does the evaluation get?
# 5. `dpo_loss_fn` calls two models with the same key. Fault or purpose?
# 6. `main` sets another implementation. What follows for noise that belongs to an example?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. The loop. It initialises the weights, and it is the parent of all step keys: two consumers.
# 2. `fold_in(init_rng, step)`. Nothing: seed in the config, step number in the state.
# 3. All the same one: `dropout_rng` comes from outside the scan, so their masks are equal.
# 4. `nextrng`, the key of the last step, for every batch. With dropout off nothing is drawn.
# 5. Purpose: the two are compared, so they should see the same mask.
# 6. `unsafe_rbg`: under `vmap` no example has noise of its own.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these is a cell above.
#
# | report | what was seen | section |
# |---|---|---|
# | [blackjax#53](https://github.com/blackjax-devs/blackjax/issues/53) | drawn from, then split: equal draws in two calls | One parent, one owner |
# | [TF_JAX_tutorials#4](https://github.com/AakashKumarNain/TF_JAX_tutorials/issues/4) | the parent drawn from; a seed inside the loop | One parent, one owner |
# | [equinox#181](https://github.com/patrick-kidger/equinox/pull/181) | a batch from one key is not the `vmap` over its children | A key is a value |
# | [blackjax#656](https://github.com/blackjax-devs/blackjax/pull/656) | carry and split, or fold in the step | An identity, not a position |
# | [maxtext#276](https://github.com/AI-Hypercomputer/maxtext/issues/276) | the carried key is in no checkpoint | The stream goes on |
# | [jax#19085](https://github.com/jax-ml/jax/issues/19085), [jax#21405](https://github.com/jax-ml/jax/issues/21405) | `rbg` under `vmap`; `unsafe_rbg` and the order of folds | What a checker sees |
# | [jax#3646](https://github.com/jax-ml/jax/pull/3646) | one key for several pieces of noise | Break it |
# | [equinox#498](https://github.com/patrick-kidger/equinox/issues/498) | a key kept in the model: the same mask at each step | In the wild |

# %% [markdown]
# ## Recap
#
# - A draw is a function of its key: same key, same numbers.
# - A key has one owner and is consumed once: drawn from, or split, or folded with numbers that never repeat.
# - Two consumers of one parent get the same children; `split` and `fold_in` walk one tree.
# - Noise follows an identity (step, process, example), not a position in the batch.
# - A checkpoint holds the key's data, its implementation's name, and the step.
# - The checker finds some reuses; the words of the keys prove the rest. Equal draws prove nothing.
# - Other implementations change what `vmap` draws.

# %% [markdown]
# ## Lab
#
# [Lab 02](../../labs/lab02_random_keys.ipynb) gives you a training step with augmentation and dropout whose keys nobody
# owns. You give each key an owner, make the noise follow the examples, and restart it exactly. About 30 minutes.
