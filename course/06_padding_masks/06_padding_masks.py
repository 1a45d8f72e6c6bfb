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
# # 06 · Shapes fixed, answers unchanged
#
# Lesson 05 ended with a fixed shape and a mask: one program for every length. This lesson is about the other half of that
# bargain. After it you can pad anything, and prove that no answer and no gradient depends on the padding.
#
# About 60 minutes.

# %% [markdown]
# ## Question
#
# The last batch has four rows, and the compiled step wants six. So somebody appends two rows of zeros. The loss falls from
# 3.75 to 2.5. Is that progress?

# %%
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import chart, predict, watch

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
y = jnp.array([2.0, -1.0, 1.0, 3.0])
zero = {"w": jnp.zeros(2), "b": jnp.zeros(())}


def mse(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def rounded(array, digits=2):
    return np.asarray(array, "float64").round(digits).tolist()


# %%
def pad_rows(x, y, size, fill=0.0):
    """x and y with rows of `fill` appended up to `size` rows, and which rows are valid."""
    missing = size - len(x)
    x = jnp.pad(x, ((0, missing), (0, 0)), constant_values=fill)
    return x, jnp.pad(y, (0, missing), constant_values=fill), jnp.arange(size) < size - missing


x6, y6, valid = pad_rows(x, y, 6)
print("four rows:", float(mse(zero, x, y)), "  padded to six:", float(mse(zero, x6, y6)), valid.tolist())

# %% [markdown]
# ## Before you run
#
# Set the bias to 1. On the four rows the gradient of the bias is −0.5, so a step of descent moves it *up*. What happens on
# the padded batch? A padded row has the target 0, and the model predicts 1 for it.

# %%
biased = {"w": jnp.zeros(2), "b": jnp.ones(())}
question = "The gradient of b is -0.50 on the four rows. What is it on the padded batch?"
guess = predict("06-M1", question, ["-0.50", "-0.33", "+0.33"])

# %% [markdown]
# ## The denominator is the valid count

# %% claims=["M1"]
true_gradient = jax.grad(mse)(biased, x, y)["b"]
padded_gradient = jax.grad(mse)(biased, x6, y6)["b"]
print(f"four rows: {true_gradient:+.2f}")
guess.reveal(f"{padded_gradient:+.2f}")

# %% [markdown]
# The sign has changed. Two zero rows that nobody measured pull the bias towards zero, and they have outvoted the data. So the
# lower loss is no progress: it is the mean over six rows, and two of them are invented.
#
# The repair has two parts: a sum over the valid rows, and a division by **their** number.


# %% claims=["M1"]
def masked_mse(params, x, y, valid):
    errors = x @ params["w"] + params["b"] - y
    return jnp.sum(jnp.where(valid, errors**2, 0)) / jnp.sum(valid)


for params in (zero, biased):
    loss, grads = jax.value_and_grad(masked_mse)(params, x6, y6, valid)
    expected = jax.grad(mse)(params, x, y)
    same = all(np.allclose(grads[name], expected[name], atol=1e-6) for name in grads)
    print(f"masked mean {loss:.2f}, gradient of the four rows: {same}")

# %% [markdown]
# A mask alone is half of it. A well-known textbook multiplied by the mask and then took `.mean()`
# ([2022](https://github.com/d2l-ai/d2l-en/issues/2076)): the padding adds nothing to the sum and still counts. Below, two
# tokens with losses 2 and 4 are padded to lengths 2, 4 and 8.

# %%
losses = jnp.array([2.0, 4.0])
question = "The textbook's mean for the two tokens, padded to length 8?"
guess = predict("06-M1b", question, ["0.75", "3.00", "6.00"])

# %% claims=["M1"]
for length in (2, 4, 8):
    padded = jnp.pad(losses, (0, length - 2))
    mask = jnp.pad(jnp.ones(2), (0, length - 2))
    textbook, right = (padded * mask).mean(), (padded * mask).sum() / mask.sum()
    print(f"length {length}: textbook {textbook:.2f}, over the valid ones {right:.2f}")
guess.reveal(f"{textbook:.2f}")

# %% [markdown]
# ### Nothing to divide by
#
# What if no row is valid? It happens: an empty shard, the last batch of a host that ran out first. 0 / 0 is NaN, and one
# such batch is enough to end a run. `safe_mean` divides by at least 1, so the mean of nothing is 0.


# %%
def safe_mean(values, valid):
    """The mean over the valid entries; 0 where there is none."""
    return jnp.sum(jnp.where(valid, values, 0)) / jnp.maximum(jnp.sum(valid), 1)


def safe_mse(params, x, y, valid):
    return safe_mean((x @ params["w"] + params["b"] - y) ** 2, valid)


# %%
none = jnp.zeros(6, bool)
guess = predict("06-M2", "masked_mse of a batch without a valid row?", ["0.0", "2.5", "nan"])

# %% claims=["M2"]
for loss_fn in (masked_mse, safe_mse):
    loss, grads = jax.value_and_grad(loss_fn)(biased, x6, y6, none)
    print(f"{loss_fn.__name__:10} loss {loss:.1f}, gradient {grads['b']:.1f}")
guess.reveal(str(float(masked_mse(biased, x6, y6, none))))

# %% [markdown]
# With `safe_mean`: value 0, gradient 0. Does a step on this batch leave the parameters alone? Here are three optimizers of
# Optax. Each has made one ordinary step; now comes the batch of padding.

# %%
import optax

optimizers = {
    "sgd": optax.sgd(0.1),
    "sgd with momentum": optax.sgd(0.1, momentum=0.9),
    "adamw": optax.adamw(0.1),
}

# %%
question = "For how many of the three do the parameters move on a gradient of zero?"
guess = predict("06-M2b", question, [0, 1, 2, 3])


# %% claims=["M2"]
def one_step(optimizer, params, opt_state, valid):
    grads = jax.grad(safe_mse)(params, x6, y6, valid)
    updates, new_opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), new_opt_state


moved = {}
for name, optimizer in optimizers.items():
    params, opt_state = one_step(optimizer, biased, optimizer.init(biased), valid)
    after, _ = one_step(optimizer, params, opt_state, none)
    moved[name] = bool(after["b"] != params["b"])
print(moved)
guess.reveal(sum(moved.values()))

# %% [markdown]
# Momentum goes on rolling, and Adam has momentum, a step count and weight decay. A gradient of zero is not "no step".
# Whether an empty batch is a step is **your decision**, and it needs code: keep the whole old state, the optimizer's
# included.


# %% claims=["M2"]
def skipping_step(optimizer, params, opt_state, valid):
    new = one_step(optimizer, params, opt_state, valid)
    return jax.tree.map(lambda n, o: jnp.where(valid.any(), n, o), new, (params, opt_state))


optimizer = optimizers["adamw"]
state = one_step(optimizer, biased, optimizer.init(biased), valid)
skipped = skipping_step(optimizer, *state, none)
print("whole state kept:", jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), skipped, state)))

# %% [markdown]
# ### Evaluation: sums and counts
#
# The same denominator, one level up. Real data from here on: 1797 handwritten digits of 8 × 8 pixels. The model is the
# simplest that there is: the mean image of each digit, and a row belongs to the nearest one.

# %%
from traceonce.data import digits

pixels, labels = digits()
train, test = slice(0, 1024), slice(1024, None)
means = jnp.stack([pixels[train][labels[train] == digit].mean(axis=0) for digit in range(10)])
x_test, y_test = pixels[test], labels[test]


# %%
@jax.jit
def correct(means, x, y, valid):
    """How many valid rows are classified right, and how many are valid."""
    distances = jnp.sum((x[:, None, :] - means) ** 2, axis=-1)
    return jnp.sum((jnp.argmin(distances, axis=1) == y) & valid), jnp.sum(valid)


# %% [markdown]
# 773 test rows in batches of 256 leave a last batch of five. It is padded and masked as it should be, and each batch's
# accuracy is right. Then the four accuracies are averaged.


# %%
def batches(x, y, size):
    """Batches of `size` rows, the last one padded, each with its mask."""
    for start in range(0, len(x), size):
        rows, targets = x[start : start + size], y[start : start + size]
        missing = size - len(rows)
        yield np.pad(rows, ((0, missing), (0, 0))), np.pad(targets, (0, missing)), np.arange(size) < len(rows)


# %%
def accuracies(size):
    right, count = np.array([correct(means, *batch) for batch in batches(x_test, y_test, size)]).T
    return np.mean(right / count), right.sum() / count.sum()


# %%
question = "The mean of batch accuracies, with batches of 64, 128 and 256: how many different values?"
guess = predict("06-M7", question, [1, 2, 3])

# %% claims=["M7"]
table = {size: accuracies(size) for size in (64, 128, 256)}
for size, (mean_of_means, weighted) in table.items():
    print(f"batches of {size:3}: mean of means {mean_of_means:.3f}, right / rows {weighted:.3f}")
guess.reveal(len({round(float(mean_of_means), 3) for mean_of_means, _ in table.values()}))

# %% [markdown]
# With means of means, the batch size is a hyperparameter of your *metric*: the five rows of the last batch weigh as much as
# 256 others. So an evaluation step returns **a sum and a count**, and whoever aggregates adds both and divides once
# ([asked of a framework in 2020](https://github.com/Lightning-AI/pytorch-lightning/issues/2924)).

# %% [markdown]
# ## A mask belongs in front
#
# So far the padding was zero. It need not be: it may be whatever was in the buffer. And even zeros can hurt, if what you
# compute is not defined at zero. The smallest example: a logarithm, with a mask around it.


# %%
def masked_log(v):
    return jnp.where(v > 0, jnp.log(v), 0.0)


# %%
question = "masked_log(0.0) is 0. What is its gradient there?"
guess = predict("06-M3", question, ["0.0", "inf", "nan"])

# %% claims=["M3"]
print("value:", float(masked_log(0.0)))
guess.reveal(str(float(jax.grad(masked_log)(0.0))))

# %% [markdown]
# Backwards, the chain rule multiplies the zero that `where` sends to the branch it did not take with the slope of `log` at 0,
# which is infinite: 0 · ∞ = NaN. The mask picked the right *value* and came too late for the arithmetic
# ([2019](https://github.com/jax-ml/jax/issues/347), [2021](https://github.com/jax-ml/jax/issues/5798)).
#
# The repair goes in front: give the operation **a safe argument** where it will be masked.


# %% claims=["M3"]
def safe_log(v):
    return jnp.where(v > 0, jnp.log(jnp.where(v > 0, v, 1.0)), 0.0)


for v in (0.0, 2.0):
    print(f"at {v}: value {safe_log(v):.3f}, gradient {jax.grad(safe_log)(v):.3f}")

# %% [markdown]
# The same for a division and for a length. The first two are masked behind, the last two have a safe argument.

# %% claims=["M3"]
guarded = {
    "where(b, a / b)": lambda b: jnp.where(b > 0, 1 / b, 0),
    "where(n, sqrt(n))": lambda n: jnp.where(n > 0, jnp.sqrt(n), 0),
    "1 / where(b, b, 1)": lambda b: jnp.where(b > 0, 1 / jnp.where(b > 0, b, 1), 0),
    "sqrt(where(n, n, 1))": lambda n: jnp.where(n > 0, jnp.sqrt(jnp.where(n > 0, n, 1)), 0),
}
for name, function in guarded.items():
    value, slope = jax.value_and_grad(function)(jnp.float32(0))
    print(f"{name:21} at 0: value {value:.0f}, gradient {slope:.0f}")

# %% [markdown]
# ### What hides in a padded row
#
# Now a batch whose padded rows hold NaN. Four ways to mask the loss; the last one replaces the *inputs* of the padded rows.


# %%
def loss_of(way):
    def loss(params, x, y, valid):
        if way == "where in front":
            x, y = jnp.where(valid[:, None], x, 0), jnp.where(valid, y, 0)
        squares, mask = (x @ params["w"] + params["b"] - y) ** 2, valid.astype("float32")
        if way == "times the mask":
            return jnp.sum(squares * mask) / mask.sum()
        if way == "mean(where=)":
            return jnp.mean(squares, where=valid)
        return jnp.sum(jnp.where(valid, squares, 0)) / mask.sum()

    return loss


# %%
x_nan, y_nan, _ = pad_rows(x, y, 6, fill=jnp.nan)
ways = ["times the mask", "mean(where=)", "where behind", "where in front"]
question = "In how many of the four is the gradient finite?"
guess = predict("06-M3b", question, [1, 2, 3, 4])

# %% claims=["M3"]
finite = 0
for way in ways:
    loss, grads = jax.value_and_grad(loss_of(way))(biased, x_nan, y_nan, valid)
    finite += bool(jnp.isfinite(grads["w"]).all())
    print(f"{way:15} loss {loss:.2f}, gradient of w {rounded(grads['w'])}")
guess.reveal(finite)

# %% [markdown]
# The first is honest: 0 · NaN is NaN, and you see it at once. The next two are worse, because **the loss looks right** while
# the gradient is NaN, and `jnp.mean(where=...)` is one of them. Only a `where` on the inputs keeps the padding out of the
# arithmetic altogether.

# %% [markdown]
# The product has one more trick. Compiled, its NaN can vanish: XLA may make a *choice* of a product with a Boolean, and then the
# eager run shows a fault that the compiled one hides. That is the compiler's affair (the output of this cell is not compared).
# Do not build on it.

# %% tags=["nbval-ignore-output"] ignored="whether a product with a Boolean becomes a select is up to the compiler"
product = lambda values, mask: jnp.sum(values * mask.astype("float32"))
values, mask = jnp.array([1.0, jnp.nan]), jnp.array([True, False])
print("eager:", product(values, mask), "  compiled:", jax.jit(product)(values, mask))
print("compiled, with a mask that was float before:", jax.jit(product)(values, mask.astype("float32")))

# %% [markdown]
# ### Attention with nothing to attend to
#
# A softmax over a row in which everything is masked. Two habits put a number where the mask is; `jax.nn.softmax` has a
# `where=` for it. What do the three give for a row with one masked entry, and for a row with nothing left?

# %%
scores = jnp.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
attend = jnp.array([[True, True, False], [False, False, False]])
softmaxes = {
    "-inf": lambda s: jax.nn.softmax(jnp.where(attend, s, -jnp.inf)),
    "-1e9": lambda s: jax.nn.softmax(jnp.where(attend, s, -1e9)),
    "where=": lambda s: jax.nn.softmax(s, where=attend),
}

# %%
question = "jax.nn.softmax(..., where=) of the row with nothing left?"
guess = predict("06-M6", question, ["nan", "all 0", "all 1/3"])

# %% claims=["M6"]
for name, function in softmaxes.items():
    first, last = rounded(function(scores))
    print(f"{name:7} one masked: {first}  all masked: {last}")
guess.reveal({0.0: "all 0"}.get(last[0], "all 1/3" if last[0] > 0 else "nan"))

# %% [markdown]
# Three different answers, and none of them is wrong: a distribution over nothing does not exist. `-inf` says NaN. `-1e9`
# says "attend to all the padding equally". `where=` says 0. **You have to decide**, and the decision must survive the
# gradient.

# %% [markdown]
# Here is why `-inf` is a trap. One row of the batch is all padding. The loss ignores it. And yet
# ([2020](https://github.com/pytorch/pytorch/issues/41508)):


# %%
def attention_loss(params, softmax):
    features = jnp.arange(6.0).reshape(2, 3)
    weights = softmax(features * params["scores"])
    output = jnp.sum(weights * (features * params["values"]), axis=-1)
    return jnp.sum(jnp.where(attend.any(axis=-1), output, 0))  # the padded row is ignored


ones = {"scores": jnp.ones(3), "values": jnp.ones(3)}

# %%
question = "With -inf: what is finite, the loss or its gradient?"
guess = predict("06-E03", question, ["both", "the loss alone", "neither"])

# %% claims=["M6"]
for name, function in reversed(softmaxes.items()):
    loss, grads = jax.value_and_grad(attention_loss)(ones, function)
    finite = {leaf: bool(jnp.isfinite(grad).all()) for leaf, grad in grads.items()}
    print(f"{name:7} loss {loss:.3f}, finite gradients: {finite}")
guess.reveal("both" if all(finite.values()) else "the loss alone" if jnp.isfinite(loss) else "neither")

# %% [markdown]
# A finite loss with a NaN gradient, for a row that nobody wanted. The weights of that row are NaN, and the gradient of the
# shared values multiplies them by 0. The ready-made attention has decided too. Below, the last query may attend to nothing.

# %%
query = jnp.ones((1, 3, 1, 2))  # batch, length, heads, features
key = value = jnp.arange(6.0).reshape(1, 3, 1, 2)
may = jnp.array([[True, True, False], [True, True, False], [False, False, False]])

# %%
mean_of_all = value.mean(axis=1)[0, 0].tolist()
choices = ["nan", "[0.0, 0.0]", f"{mean_of_all}, the mean of all values"]
guess = predict("06-M6b", "dot_product_attention for a query that may attend to nothing?", choices)

# %% claims=["M6"]
output = jax.nn.dot_product_attention(query, key, value, mask=may[None, None])[0, :, 0]
told = {"query_seq_lengths": jnp.array([2]), "key_value_seq_lengths": jnp.array([2])}
by_length = jax.nn.dot_product_attention(query, key, value, **told)[0, :, 0]
print("mask:", rounded(output))
print("lengths:", rounded(by_length))
guess.reveal(choices[2] if output[2].tolist() == mean_of_all else str(output[2].tolist()))

# %% [markdown]
# With a mask, a query without keys gets the mean of **all** values, the masked ones included: finite, plausible, wrong. Told
# the lengths, it gives 0. And no mask on the scores keeps out a NaN in the values, because a weight of 0 times NaN is NaN.

# %% claims=["M6"]
poisoned = value.at[0, 2].set(jnp.nan)  # the third key is masked for everybody
output = jax.nn.dot_product_attention(query, key, poisoned, mask=may[None, None])[0, 0, 0]
clean = jnp.where(may.any(axis=0)[None, :, None, None], poisoned, 0)
repaired = jax.nn.dot_product_attention(query, key, clean, mask=may[None, None])[0, 0, 0]
print("first query:", output.tolist(), "  values cleaned first:", rounded(repaired))

# %% [markdown]
# ### Statistics across the batch
#
# Anything that looks *across* rows sees the padding: batch normalisation
# ([2021](https://github.com/pytorch/pytorch/issues/70529)), a whitening, a contrastive loss. There, padded rows change the
# valid ones. The reductions of `jnp` take `where=`.

# %% claims=["M6"]
rows = {"four rows": (x, None), "padded": (x6, None), "padded, where=": (x6, valid[:, None])}
for name, (batch, where) in rows.items():
    mean, var = jnp.mean(batch, axis=0, where=where), jnp.var(batch, axis=0, where=where)
    print(f"{name:15} mean {rounded(mean)}, variance {rounded(var)}")

# %% [markdown]
# ## Few shapes for many lengths
#
# Padding costs work. Padding everything to the longest wastes most of it on short inputs, and not padding at all costs a
# compile for each length. In between are **buckets**: a few sizes, and each input goes into the smallest that holds it.

# %%
BUCKETS = (8, 16, 32)
lengths = np.random.default_rng(6).integers(3, 33, size=60)
sequences = [np.arange(n, dtype="float32") for n in lengths]
print("sequences:", len(sequences), " different lengths:", len(set(lengths.tolist())))


# %%
def bucket_for(n, buckets=BUCKETS):
    """The smallest bucket that holds n entries. Raises ValueError where none does."""
    for size in buckets:
        if n <= size:
            return size
    raise ValueError(f"{n} entries do not fit into the largest bucket, {buckets[-1]}")


# %%
def run(buckets):
    """All sequences through one compiled function: its compiles, the answers, the padded entries."""
    mean = watch(jax.jit(lambda values, valid: safe_mean(values, valid)))
    answers, padding = [], 0
    for values in sequences:
        size = bucket_for(len(values), buckets)
        padded = np.pad(values, (0, size - len(values)))
        answers.append(float(mean(padded, np.arange(size) < len(values))))
        padding += size - len(values)
    return mean.counts.compiles, answers, padding


# %%
question = "Buckets 8, 16, 32 instead of 32 alone: how much of the padding goes away?"
shares = {"30 %": 0.3, "60 %": 0.6, "90 %": 0.9}
guess = predict("06-M4", question, list(shares))

# %% claims=["M4"]
plans = [(32,), (16, 32), BUCKETS, tuple(range(4, 33, 4)), tuple(range(1, 33))]
results = [run(buckets) for buckets in plans]
for buckets, (compiles, _, padding) in zip(plans, results, strict=True):
    print(f"{len(buckets):2} buckets: {compiles:2} compiles, {padding:3} padded entries")
print("same answers:", all(np.allclose(answers, results[-1][1]) for _, answers, _ in results))
gone = 1 - results[2][2] / results[0][2]
guess.reveal(min(shares, key=lambda share: abs(shares[share] - gone)))

# %% [markdown]
# The number of compiles is bounded by the number of buckets, whatever lengths come, and the answers are the same. The first
# few buckets buy most. The picture shows what is shipped to the device, in bytes; each bar is a plan with so many compiles.

# %% claims=["M4"]
from traceonce.show import Arm, Bars

real = 4.0 * lengths.sum()
arms = []
for buckets, (compiles, _, padding) in zip(plans, results, strict=True):
    name = f"{len(buckets)} bucket{'s' * (len(buckets) > 1)}, {compiles} compile{'s' * (compiles > 1)}"
    arms.append(Arm(name, (real, 4.0 * padding)))
_ = chart(Bars("60 sequences: bytes shipped, by plan", ("values", "padding"), tuple(arms)))

# %% [markdown]
# An input that fits into no bucket is refused: cutting it would change the answer in silence, and a bucket of its own would
# end the bound.

# %% [markdown]
# ### More compiles than buckets
#
# In a batch the length is not the only size. Sequences are grouped by bucket, up to four in a batch, and the last batch of a
# group may be short.


# %%
def grouped(pad_batch, size=4):
    """Batches of sequences of one bucket: values and mask of shape (rows, bucket)."""
    for bucket in BUCKETS:
        group = [values for values in sequences if bucket_for(len(values)) == bucket]
        for start in range(0, len(group), size):
            part = group[start : start + size]
            shape = (size if pad_batch else len(part), bucket)
            values, mask = np.zeros(shape, "float32"), np.zeros(shape, bool)
            for i, sequence in enumerate(part):
                values[i, : len(sequence)], mask[i, : len(sequence)] = sequence, True
            yield values, mask


# %%
print("sequences by bucket:", [sum(bucket_for(n) == bucket for n in lengths) for bucket in BUCKETS])
question = "Three buckets, batches of four, the last of a group short: how many compiles?"
guess = predict("06-M4b", question, [3, 4, 5, 6])


# %% claims=["M4"]
def mean_of_batches(pad_batch):
    @watch
    @jax.jit
    def total(values, mask):
        return jnp.sum(jnp.where(mask, values, 0)), jnp.sum(mask)

    chart(total.seen)
    sums = np.array([total(*batch) for batch in grouped(pad_batch)], "float64").sum(axis=0)
    return total.counts.compiles, round(float(sums[0] / sums[1]), 3)


short, padded = mean_of_batches(pad_batch=False), mean_of_batches(pad_batch=True)
print("compiles and mean, short batches:", short, "  padded in both directions:", padded)
guess.reveal(short[0])

# %% [markdown]
# Every axis that varies needs a bound, and the bounds multiply. The same comes in through the back door: a mask of the
# unpadded length, a count that is a static argument. What varies must be *data* in an array of fixed shape.

# %% [markdown]
# ### A fixed number of slots
#
# A detector finds any number of things. `top_k` puts them into a fixed number of slots, and a mask says which slots hold
# one (lesson 05). Whoever reads the slots must read the mask:

# %%
frame = jnp.array([0.2, 0.9, 0.1, 0.6, 0.3, 0.0])
slots, places = jax.lax.top_k(frame, 4)
filled = slots > 0.5  # a hit
guess = predict("06-M5", "A reader takes slots.mean() for the mean hit. It gets?", ["0.35", "0.50", "0.75"])

# %% claims=["M5"]
print("slots", rounded(slots), "filled", filled.tolist())
print(f"mean   {safe_mean(slots, filled):.2f}, of all slots {slots.mean():.2f}")
print(f"lowest {jnp.min(slots, where=filled, initial=jnp.inf):.1f}, of all slots {slots.min():.1f}")
guess.reveal(f"{slots.mean():.2f}")

# %% [markdown]
# ### A ring
#
# "The last four valid readings" is a `deque(maxlen=4)` in Python, and its length varies. As state that a compiled loop carries,
# it is an array of four slots and a count. The next slot is the count modulo four; an invalid reading writes nothing.


# %%
def push(ring, reading):
    """Write `reading` (value, ok) into the ring; the mean of what it holds comes out."""
    value, ok = reading
    slot = ring["count"] % 4
    values = ring["values"].at[slot].set(jnp.where(ok, value, ring["values"][slot]))
    count = ring["count"] + ok
    return {"values": values, "count": count}, safe_mean(values, jnp.arange(4) < count)


# %%
empty = {"values": jnp.zeros(4), "count": jnp.int32(0)}
readings = jnp.array([1.0, 2.0, jnp.nan, 4.0, 5.0, 6.0])
ok = ~jnp.isnan(readings)
guess = predict("06-M5b", "1, 2, NaN, 4, 5, 6 into the ring: the last mean?", ["3.60", "4.25", "5.00", "nan"])

# %% claims=["M5"]
from collections import deque

ring, ring_means = jax.lax.scan(push, empty, (readings, ok))
window, deque_means = deque(maxlen=4), []
for reading in readings.tolist():
    window.extend([] if np.isnan(reading) else [reading])
    deque_means.append(float(np.mean(window)))
print("ring: ", rounded(ring_means), ring["values"].tolist(), int(ring["count"]))
print("deque:", rounded(deque_means))
guess.reveal(f"{ring_means[-1]:.2f}")

# %% [markdown]
# Empty, half full and wrapped around have the same shapes, so one program serves them all. The mask `arange(4) < count` needs
# no second case: once the count has passed four, every slot is valid.

# %% [markdown]
# ## Branches and loops
#
# Masks decide entry by entry. Sometimes a whole piece of the program depends on a value. Can a Python `if` decide it?


# %%
def absolute(v):
    return v if v > 0 else -v


guess = predict("06-M8", "jax.jit(absolute)(1.0)?", ["1.0", "it raises"])

# %% claims=["M8"]
try:
    guess.reveal(str(float(jax.jit(absolute)(1.0))))
except jax.errors.TracerBoolConversionError as error:
    print(type(error).__name__)
    guess.reveal("it raises")

# %% [markdown]
# Which way out is right follows from what you *mean*:
#
# | you mean | write | what runs |
# |---|---|---|
# | each entry chooses | `jnp.where(mask, a, b)` | both, always |
# | one decision, one side is dear | `jax.lax.cond(p, f, g, v)` | one |
# | a setting, known before | Python `if` on a static argument | one; a program for each value |
# | a rare case, outside of the step | Python `if` on a returned value | one; waits for the device |

# %% [markdown]
# `jax.debug.callback` calls Python whenever a compiled branch really runs. Below it is in both sides of a `cond`, and a counter
# collects the sides that ran.

# %%
ran = []


def side(name):
    def run_side(v):
        jax.debug.callback(lambda: ran.append(name))
        return v

    return run_side


# %%
def choose(p, v):
    return jax.lax.cond(p > 0, side("yes"), side("no"), v)


def sides(function, *args):
    """The sides that ran in one compiled call."""
    ran.clear()
    jax.block_until_ready(jax.jit(function)(*args))
    jax.effects_barrier()
    return " and ".join(sorted(set(ran)))


# %%
pair = jnp.array([1.0, 2.0])
question = "vmap(choose) over two positive predicates: which sides run?"
guess = predict("06-M8b", question, ["yes", "no", "no and yes"])

# %% claims=["M8"]
print("one call:                 ", sides(choose, 1.0, 1.0))
print("vmap over the predicate:  ", sides(jax.vmap(choose), pair, pair))
print("vmap, predicate in common:", sides(jax.vmap(choose, in_axes=(None, 0)), 1.0, pair))
guess.reveal(sides(jax.vmap(choose), pair, pair))

# %% [markdown]
# With a batched predicate, `vmap` has made a select of the `cond`, and both sides run for the whole batch
# ([asked in 2020](https://github.com/jax-ml/jax/issues/3103), [2021](https://github.com/jax-ml/jax/issues/8409)); so does
# [a print in it](https://github.com/jax-ml/jax/issues/19314). A predicate that the batch has in common stays a branch. The
# lowered text says the same:


# %% claims=["M8"]
def lowered(function, *args):
    text = jax.jit(function).lower(*args).as_text()
    return {"case": "stablehlo.case" in text, "select": "stablehlo.select" in text}


log_or_zero = lambda p, v: jax.lax.cond(p > 0, jnp.log, lambda v: 0.0 * v, v)
print("one call:                 ", lowered(log_or_zero, 1.0, 1.0))
print("vmap over the predicate:  ", lowered(jax.vmap(log_or_zero), pair, pair))
print("vmap, predicate in common:", lowered(jax.vmap(log_or_zero, in_axes=(None, 0)), 1.0, pair))

# %% [markdown]
# If a batched `cond` is a select, does it have the NaN of `masked_log`? Both below, under `vmap`, at 0 and at 2.

# %%
cond_log = lambda v: jax.lax.cond(v > 0, jnp.log, lambda v: 0.0 * v, v)
question = "Under vmap, whose gradient at 0 is NaN?"
guess = predict("06-M8c", question, ["where and cond", "where", "cond"])

# %% claims=["M8"]
at = jnp.array([0.0, 2.0])
gradients = {name: jax.vmap(jax.grad(f))(at) for name, f in (("where", masked_log), ("cond", cond_log))}
for name, gradient in gradients.items():
    print(f"{name:5} {gradient.tolist()}")
guess.reveal(" and ".join(name for name, gradient in gradients.items() if jnp.isnan(gradient[0])))

# %% [markdown]
# When JAX makes a select of a `cond`, it cuts the gradient of the entries that did not choose a side, as a safe argument does by
# hand. So: `where` for cheap entries, with a safe argument; `cond` where a side is dear and the predicate is one.

# %% [markdown]
# ### Loops
#
# A loop whose number of turns depends on a value has no fixed shape in *time*. Three doublings, written in two
# ways: the value is 8 · v, and so the gradient is 8.


# %%
def doubled_while(v):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1]), (0, v))[1]


def doubled_scan(v):
    return jax.lax.scan(lambda carry, _: (2 * carry, None), v, length=3)[0]


guess = predict("06-M9", "jax.grad(doubled_while)(1.0)?", ["8.0", "0.0", "it raises"])

# %% claims=["M9"]
print("values:", float(doubled_while(1.0)), float(doubled_scan(1.0)))
print("scan, gradient:", float(jax.grad(doubled_scan)(1.0)))
print("while_loop, forward mode:", float(jax.jvp(doubled_while, (1.0,), (1.0,))[1]))
try:
    guess.reveal(str(float(jax.grad(doubled_while)(1.0))))
except ValueError as error:
    print("while_loop, reverse mode:", str(error).split(" or ")[0])
    guess.reveal("it raises")

# %% [markdown]
# Reverse mode keeps something of each turn, and memory for an unknown number of turns has no shape
# ([2020](https://github.com/jax-ml/jax/issues/1954)). A `scan` of fixed length has. And if the number of turns varies? **Pad
# the time**: run the longest, and mask the turns beyond.


# %% claims=["M9"]
def doubled(v, turns, longest=8):
    def turn(carry, i):
        return jnp.where(i < turns, 2 * carry, carry), None

    return jax.lax.scan(turn, v, jnp.arange(longest))[0]


gradient = watch(jax.jit(jax.grad(doubled)))
print([float(gradient(1.0, turns)) for turns in (0, 3, 5)], "compiles:", gradient.counts.compiles)
fixed = lambda v: jax.lax.fori_loop(0, 3, lambda i, v: 2 * v, v)
print("fori_loop with fixed bounds:", float(jax.grad(fixed)(1.0)))

# %% [markdown]
# What a loop carries keeps its shape and its dtype, because each turn runs the same program. A growing array is refused, and
# so is a counter that becomes a float. (A plain Python `0` is weak, and is made to fit.)

# %% claims=["M9"]
carries = {
    "it grows": (lambda c, _: (jnp.append(c, 1.0), None), jnp.zeros(1)),
    "int32 becomes float32": (lambda c, _: (c + 0.5, None), jnp.int32(0)),
    "a Python 0 does": (lambda c, _: (c + jnp.float32(0.5), None), 0),
}
for name, (body, start) in carries.items():
    try:
        print(f"{name:22} {float(jax.lax.scan(body, start, length=3)[0])}")
    except TypeError as error:
        print(f"{name:22} TypeError: the", str(error).split("so the ")[1].split(".")[0])

# %% [markdown]
# ## Break it
#
# Everything in this loss is masked, and a review found nothing. It standardises the pixels of a batch, multiplies them with
# weights and takes the cross-entropy of the valid rows over their count.

# %%
weights = 0.5 * means.T  # shape (64, 10)


def reviewed_loss(weights, x, y, valid):
    x = (x - x.mean(axis=0)) / (x.std(axis=0) + 0.1)
    x = jnp.where(valid[:, None], x, 0)
    losses = optax.softmax_cross_entropy_with_integer_labels(x @ weights, y)
    return safe_mean(losses, valid)


# %%
def twelve(size, fill=0.0):
    """The first twelve digits, padded to `size` rows of `fill`: x, y, valid."""
    x, y, valid = pad_rows(pixels[:12], labels[:12], size)
    return jnp.where(valid[:, None], x, fill), y, valid


# %%
question = "12 digits, padded to 12, 16 and 32 rows of zeros: how many different losses?"
guess = predict("06-B1", question, [1, 2, 3])

# %%
seen_losses = [f"{reviewed_loss(weights, *twelve(size)):.3f}" for size in (12, 16, 32)]
print(seen_losses)
guess.reveal(len(set(seen_losses)))

# %% [markdown]
# Each mask is right, and the first line has none. Mean and spread are taken over all rows, so the padding moves the *valid*
# rows, and no mask further down can take that back. Reading does not find this; **changing the padding** does.

# %% [markdown]
# ## Repair it
#
# Turn "no answer depends on the padding" into a test. It varies what must not matter, and compares loss *and* gradient with
# those of the bare rows: the amount of padding, its content, the order of the rows, the split into batches.


# %%
def variations():
    """The same twelve digits in ways that must not matter: a name and a list of batches."""
    order = np.array([0, *range(15, 0, -1)])
    yield "more padding", [twelve(32)]
    yield "order of rows", [tuple(part[order] for part in twelve(16))]
    yield "padding of 1e30", [twelve(16, 1e30)]
    yield "padding of NaN", [twelve(16, jnp.nan)]
    yield "split in two", [tuple(part[half] for part in twelve(16)) for half in (slice(0, 8), slice(8, 16))]


# %%
def same_answer(loss_fn, batches):
    """Whether the batches, weighted by their valid rows, give the loss and gradient of the bare rows."""
    expected = jax.value_and_grad(loss_fn)(weights, *twelve(12))
    shares = [batch[2].sum() / 12 for batch in batches]
    parts = [jax.value_and_grad(loss_fn)(weights, *batch) for batch in batches]
    total = jax.tree.map(lambda *leaves: sum(map(jnp.multiply, shares, leaves)), *parts)
    return all(np.allclose(a, b, atol=1e-4) for a, b in zip(total, expected, strict=True))


# %% [markdown]
# The repair: clean the inputs in front, then take the statistics of the valid rows.


# %%
def masked_loss(weights, x, y, valid):
    x = jnp.where(valid[:, None], x, 0)
    mean, spread = (f(x, axis=0, where=valid[:, None]) for f in (jnp.mean, jnp.std))
    losses = optax.softmax_cross_entropy_with_integer_labels((x - mean) / (spread + 0.1) @ weights, y)
    return safe_mean(losses, valid)


# %%
question = "How many of the five variations still change the answer of masked_loss?"
guess = predict("06-B2", question, [0, 1, 2])

# %%
table = {name: [same_answer(f, batches) for f in (reviewed_loss, masked_loss)] for name, batches in variations()}
for name, (reviewed, masked) in table.items():
    print(f"{name:16} reviewed: {reviewed!s:5}  masked: {masked}")
guess.reveal(sum(not masked for _, masked in table.values()))

# %% [markdown]
# Padding does not matter any more. The split still does, and that is no fault of a mask: a statistic of the *batch* is
# another one for another batch. If the split must not matter either, the statistics are state, fixed before and passed in.


# %%
def fixed_loss(weights, x, y, valid):
    x = (jnp.where(valid[:, None], x, 0) - fixed_mean) / (fixed_spread + 0.1)
    return safe_mean(optax.softmax_cross_entropy_with_integer_labels(x @ weights, y), valid)


fixed_mean, fixed_spread = pixels[train].mean(axis=0), pixels[train].std(axis=0)
kept = {name: same_answer(fixed_loss, batches) for name, batches in variations()}
print(kept)
assert all(kept.values())

# %% [markdown]
# Now the question of the beginning. A lower loss on a padded batch is no progress, because it is another question. A right
# loss gives the **same value and the same gradient** for any padding, and you have a test for that.

# %% [markdown]
# ## In the wild
#
# Data parallelism pads, too: each device has as many rows as the others, and not all are valid. A mean on each device and
# then a mean of the devices is a mean of means, *in the gradient*. Two devices, with four valid rows and with one:

# %%
shards = [pad_rows(x, y, 4), pad_rows(x[:1], y[:1], 4)]
everything = (jnp.concatenate([x, x[:1]]), jnp.concatenate([y, y[:1]]))
question = "Is the mean of the two shards' gradients that of the five rows?"
guess = predict("06-W1", question, ["yes", "no"])

# %% claims=["M7"]
expected = jax.grad(mse)(zero, *everything)["b"]
parts = [jax.grad(safe_mse)(zero, *shard)["b"] for shard in shards]
counts = [shard[2].sum() for shard in shards]
weighted = sum(n * part for n, part in zip(counts, parts, strict=True)) / sum(counts)
print(f"five rows {expected:.2f}, mean of shards {sum(parts) / 2:.2f}, weighted by count {weighted:.2f}")
guess.reveal("yes" if np.isclose(expected, sum(parts) / 2) else "no")

# %% [markdown]
# **Read a real loop** (10 minutes). Open `compute_metrics`, `train_step`, `evaluate` and `pad_examples` in Flax's
# [translation example](https://github.com/google/flax/blob/f2281cc742aeb9ba8c95f65d50da2ac76957c38e/examples/wmt/train.py).
#
# 1. What does the evaluation return for each batch, and who divides?
# 2. Is the mask in front of the arithmetic or behind it? What would a NaN in a padded token do?
# 3. Each device divides by its own number of tokens, and then the gradients are averaged. What is that, if the devices hold
#    different numbers of tokens?
# 4. With what does `pad_examples` fill, and what becomes of the surplus?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. Sums and a denominator, added over devices. `evaluate` adds over batches and divides once.
# 2. Behind: `loss * weights`, with weights 0.0 and 1.0. Padding is token 0, so nothing is NaN; a NaN would spread.
# 3. A mean of means, as in the cell above: the metric weights by tokens and the gradient does not. With about equal numbers of
#    tokens the difference is small.
# 4. With copies of the last row, which are ordinary text; the surplus predictions are cut off on the host.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these was reported from somebody's own work, and you have run it above.
#
# | report | what was seen | section |
# |---|---|---|
# | [d2l-en#2076](https://github.com/d2l-ai/d2l-en/issues/2076) | a masked loss that divides by the padded length | The denominator |
# | [pytorch-lightning#2924](https://github.com/Lightning-AI/pytorch-lightning/issues/2924) | the small last batch skews the epoch's metric | The denominator |
# | [jax#347](https://github.com/jax-ml/jax/issues/347), [jax#5798](https://github.com/jax-ml/jax/issues/5798) | the side that was not chosen is NaN in the gradient | A mask belongs in front |
# | [pytorch#41508](https://github.com/pytorch/pytorch/issues/41508) | a wholly masked row: finite loss, NaN gradients | A mask belongs in front |
# | [pytorch#70529](https://github.com/pytorch/pytorch/issues/70529) | batch statistics include the padding | A mask belongs in front |
# | [diffrax#111](https://github.com/patrick-kidger/diffrax/issues/111) | the short last batch compiles (run in lesson 05) | Few shapes |
# | [jax#21994](https://github.com/jax-ml/jax/issues/21994) | an update by Boolean mask works eagerly only (run in lesson 01) | Few shapes |
# | [jax#3103](https://github.com/jax-ml/jax/issues/3103), [jax#8409](https://github.com/jax-ml/jax/issues/8409), [jax#19314](https://github.com/jax-ml/jax/issues/19314) | under vmap both sides of a `cond` run | Branches and loops |
# | [jax#1954](https://github.com/jax-ml/jax/issues/1954) | a loop without a reverse gradient | Branches and loops |

# %% [markdown]
# ## Recap
#
# - Divide by the valid count, and decide whether an empty batch is a step.
# - Hand on sums and counts; divide once, at the end.
# - The mask goes in front: clean inputs, safe arguments. A right loss can have a NaN gradient.
# - A softmax over nothing, and statistics across a batch, need a decision.
# - Buckets bound the compiles if *every* axis has a bound; slots and rings carry what varies as data.
# - `where` for entries, `cond` for one dear decision, a masked `scan` for a loop with a gradient.
# - Test it: vary amount, content, order and split; compare values and gradients.

# %% [markdown]
# ## Lab
#
# [Lab 06](../../labs/lab06_padding_masks.ipynb) takes a classifier of digits whose curves got better when its batches were
# padded. You build its pieces again: loss, statistics, step, metrics, slots, a ring, buckets. The grader varies the padding.
# About 40 minutes.
