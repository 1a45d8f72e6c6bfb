"""Hidden asserts of lab 06.

The rows are real digits, drawn without repetition; parameters are random. Everything is judged by what must not change: the
expected values come from the valid rows alone, in float64, and the rows that are not valid hold NaN, infinities, huge numbers
and labels that no digit has. Batches have eight rows wherever JAX compiles something, so that a submission pays for one program
a function.

Losses are about 40 and parameters of order 1. A right float32 answer is within 5e-6 of the reference (relative, or absolute where
it is small); the wrong ones known are off by 1e-2 and more.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from traceonce.data import digits
from traceonce.grade.hidden import Host, StudentError, graded, same_tree

TOLERANCE = 1e-4
ROWS = 8
FILLS = (np.nan, np.inf, 1e30)
PIXELS, LABELS = digits()


@dataclass(frozen=True)
class Batch:
    """Eight rows, of which those in `where` are digits: x (8, 64), y (8,), valid (8,)."""

    x: np.ndarray
    y: np.ndarray
    valid: np.ndarray

    @property
    def arrays(self):
        return self.x, self.y, self.valid


def batch(lab, count, *, fill=0.0, label=0, scattered=False):
    rows = lab.rng.choice(len(PIXELS), count, replace=False)
    where = np.sort(lab.rng.choice(ROWS - 1, count, replace=False)) + 1 if scattered else np.arange(count)
    x, y = np.full((ROWS, 64), fill, "float32"), np.full(ROWS, label, "int32")
    valid = np.zeros(ROWS, bool)
    x[where], y[where], valid[where] = PIXELS[rows], LABELS[rows], True
    return Batch(x, y, valid)


def filled(given, fill, label):
    """The same batch with other things in the rows that are not valid."""
    x = np.where(given.valid[:, None], given.x, np.float32(fill))
    return Batch(x, np.where(given.valid, given.y, np.int32(label)), given.valid)


def random_params(lab):
    return {
        "w": lab.rng.normal(0, 0.4, (64, 10)).astype("float32"),
        "b": lab.rng.normal(0, 1.0, 10).astype("float32"),
    }


def scores_of(params, x):
    return np.float64(x) @ np.float64(params["w"]) + np.float64(params["b"])


def row_losses(params, x, y):
    return np.sum((scores_of(params, x) - np.eye(10)[y]) ** 2, axis=1)


def loss_of(params, given):
    return row_losses(params, given.x[given.valid], given.y[given.valid]).mean()


def gradient_of(params, given):
    x, y = given.x[given.valid], given.y[given.valid]
    pull = 2 * (scores_of(params, x) - np.eye(10)[y]) / len(y)
    return {"w": np.float64(x).T @ pull, "b": pull.sum(axis=0)}


def close(got, expected):
    """Equal within the tolerance, and of the same shape: nothing is broadcast. NaN equals nothing."""
    return np.shape(got) == np.shape(expected) and np.allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE)


def same_gradient(got, expected):
    return got.keys() == expected.keys() and all(close(got[name], expected[name]) for name in expected)


def loss_and_grad(lab, params, given):
    return lab.call("loss_and_grad", params, *given.arrays)


def traced(seen):
    """Traces and compiles of anything at all."""
    return seen.traces + seen.compiles + sum(seen.other_traces.values()) + sum(seen.other_compiles.values())


# masked_loss ----------------------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="masked_loss",
    title="The loss runs inside jit",
    hint="masked_loss should run inside jit, where `valid` is a tracer: x[valid] has no fixed shape there, and int(...), "
    "np.asarray(...) and a Python `if` want numbers on the host. jnp.where keeps the shape.",
)
def test_loss_runs_inside_jit(lab):
    loss, _ = loss_and_grad(lab, random_params(lab), batch(lab, 5))
    assert np.shape(loss) == ()


@graded(
    points=2,
    task="masked_loss",
    title="Loss and gradient are means over the valid rows",
    hint="The loss should be a sum over the valid rows, divided by how many they are. A mean over all rows has the padding in "
    "its denominator: more padding, lower loss. And padded rows of zeros still see the bias, and pull it.",
)
def test_denominator_is_the_valid_count(lab):
    params = random_params(lab)
    for count in (2, 6):
        given = batch(lab, count)
        loss, grads = loss_and_grad(lab, params, given)
        assert close(loss, loss_of(params, given))
        assert same_gradient(grads, gradient_of(params, given))


@graded(
    points=3,
    task="masked_loss",
    title="What the padding holds reaches neither loss nor gradient",
    hint="NaN, infinities and huge numbers in rows that are not valid should change nothing, the gradient included. A mask "
    "behind the arithmetic comes too late: 0 * NaN is NaN on the way back. Replace the padded rows of x in front.",
)
def test_padding_content_reaches_nothing(lab):
    params = random_params(lab)
    given = batch(lab, 5)
    for fill in FILLS:
        loss, grads = loss_and_grad(lab, params, filled(given, fill, 0))
        assert close(loss, loss_of(params, given))
        assert same_gradient(grads, gradient_of(params, given))


@graded(
    points=2,
    task="masked_loss",
    title="Which rows are valid comes from `valid` alone",
    hint="The padding need not come last, and its labels may be anything, also digits. The loss should take the rows that "
    "`valid` names: no position, no label and no value of x stands for padding.",
)
def test_valid_alone_says_which_rows(lab):
    params = random_params(lab)
    for label in (3, 99, -1):
        given = batch(lab, 4, label=label, scattered=True)
        loss, grads = loss_and_grad(lab, params, given)
        assert close(loss, loss_of(params, given))
        assert same_gradient(grads, gradient_of(params, given))


@graded(
    points=2,
    task="masked_loss",
    title="Without a valid row, loss and gradient are 0",
    hint="With no valid row the loss should be 0, and its gradient 0 as well. 0 / 0 is NaN: make the divisor safe, as with "
    "jnp.maximum(count, 1).",
)
def test_empty_batch_is_zero(lab):
    params = random_params(lab)
    for fill in (0.0, np.nan):
        loss, grads = loss_and_grad(lab, params, batch(lab, 0, fill=fill))
        assert close(loss, 0.0)
        assert same_gradient(grads, {name: np.zeros_like(leaf) for name, leaf in params.items()})


# standardise ----------------------------------------------------------------------------------------------------------


def standardised(given):
    rows = np.float64(given.x[given.valid])
    result = np.zeros((ROWS, 64))
    result[given.valid] = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 0.1)
    return result


@graded(
    points=2,
    task="standardise",
    title="Mean and spread are those of the valid rows",
    hint="Mean and spread should be taken over the valid rows alone. Over all rows the padding leaks into every valid one, and "
    "a mask on the result cannot take it back.",
)
def test_statistics_are_those_of_the_valid_rows(lab):
    for count in (3, 6):
        given = batch(lab, count)
        got = np.asarray(lab.call("standardise", given.x, given.valid))
        assert got.shape == (ROWS, 64)
        assert close(got[given.valid], standardised(given)[given.valid])


@graded(
    points=1,
    task="standardise",
    title="Padded rows come out as zeros, whatever they held",
    hint="Rows that are not valid should come out as zeros, and what they held should reach no other row: NaN - mean is NaN, "
    "and 0 * NaN is NaN. Replace them in front, and choose the zeros with jnp.where.",
)
def test_padded_rows_come_out_as_zeros(lab):
    given = batch(lab, 4, scattered=True)
    for fill in FILLS:
        got = lab.call("standardise", filled(given, fill, 0).x, given.valid)
        assert close(got, standardised(given))


# step -----------------------------------------------------------------------------------------------------------------


def like_params(lab):
    return {name: lab.rng.normal(0, 1.0, leaf.shape).astype("float32") for name, leaf in random_params(lab).items()}


def state_of(lab):
    return {"params": random_params(lab), "velocity": like_params(lab), "steps": np.int32(lab.rng.integers(2, 90))}


def after(state, grads, lr):
    """The state after a step."""
    velocity = {name: 0.9 * np.float64(v) + grads[name] for name, v in state["velocity"].items()}
    return {
        "params": {name: np.float64(p) - lr * velocity[name] for name, p in state["params"].items()},
        "velocity": velocity,
        "steps": int(state["steps"]) + 1,
    }


@graded(
    points=2,
    task="step",
    title="A batch with valid rows moves parameters and velocity",
    hint="With any valid row the new velocity should be 0.9 * velocity + grads, the parameters should move against it by the "
    "rate, and steps should be one higher, still with its dtype. It should run inside jit: a Python `if` on the count raises there.",
)
def test_step_moves_by_the_velocity(lab):
    for count in (1, ROWS):
        state, grads, lr = state_of(lab), like_params(lab), float(lab.rng.uniform(0.1, 0.5))
        got = lab.call("compiled_step", state, grads, np.int32(count), lr)
        expected = after(state, grads, lr)
        assert same_gradient(got["params"], expected["params"])
        assert same_gradient(got["velocity"], expected["velocity"])
        assert int(got["steps"]) == expected["steps"]
        assert np.asarray(got["steps"]).dtype == np.int32


@graded(
    points=3,
    task="step",
    title="An empty batch changes nothing of the state",
    hint="With a count of 0 parameters, velocity and steps should stay as they were, whatever the gradient is: zero, a number or "
    "NaN. A gradient of zero is not enough: the velocity still moves the parameters, and decays. A product with a flag is not "
    "either: 0 * NaN is NaN. Choose the whole old state, inside the program.",
)
def test_empty_batch_changes_nothing(lab):
    state = state_of(lab)
    for grads in (
        like_params(lab),
        *({name: np.full_like(v, fill) for name, v in state["velocity"].items()} for fill in (0, np.nan)),
    ):
        got = lab.call("compiled_step", state, grads, np.int32(0), 0.3)
        assert same_tree(got["params"], state["params"])
        assert same_tree(got["velocity"], state["velocity"])
        assert int(got["steps"]) == int(state["steps"])


# evaluate -------------------------------------------------------------------------------------------------------------


def data(lab, count):
    rows = lab.rng.choice(len(PIXELS), count, replace=False)
    return PIXELS[rows], LABELS[rows]


def evaluated(lab, params, x, y):
    got = lab.call("evaluate", params, Host(x), Host(y), ROWS)
    return float(got["loss"]), float(got["accuracy"])


def evaluation(lab, params, count, size):
    """What was seen in an evaluation of `count` rows whose loss was right."""
    x, y = data(lab, count)
    seen = lab.observe("evaluate", params, Host(x), Host(y), size)
    assert close(float(seen.value["loss"]), row_losses(params, x, y).mean())
    return seen


def clear_data(lab, params, count):
    """Rows whose two largest scores are far apart: rounding in float32 changes no digit."""
    x, y = data(lab, 2 * count)
    scores = np.sort(scores_of(params, x))
    clear = np.argsort(scores[:, -2] - scores[:, -1])[:count]
    return x[clear], y[clear]


def accuracy(params, x, y):
    return np.mean(scores_of(params, x).argmax(axis=1) == y)


@graded(
    points=2,
    task="evaluate",
    title="Every row has the same weight in the loss",
    hint="The loss should be the mean over all rows. A mean of batch means gives the few rows of a short batch the weight of "
    "many, dropping it leaves them out, and an extra batch without a row divides 0 by 0: add sums, divide once.",
)
def test_rows_have_equal_weight_in_the_loss(lab):
    params = random_params(lab)
    for count in (11, 16, 17):
        x, y = data(lab, count)
        # The last batch has the largest losses, so that no other weight of it gives the mean.
        order = np.argsort(row_losses(params, x, y))
        x, y = x[order], y[order]
        assert close(evaluated(lab, params, x, y)[0], row_losses(params, x, y).mean())


@graded(
    points=1,
    task="evaluate",
    title="The accuracy counts real rows alone",
    hint="The accuracy should be the number of right rows over the number of rows. A padded row can be 'right' by accident: "
    "the mask belongs to the metric, too.",
)
def test_accuracy_counts_real_rows(lab):
    params = random_params(lab)
    params["b"][0] = params["b"].max() + 1  # a row of zeros is taken for a 0
    for count in (11, 17):
        x, y = clear_data(lab, params, count)
        assert close(evaluated(lab, params, x, y)[1], accuracy(params, x, y))


@graded(
    points=2,
    task="evaluate",
    title="A size of batch costs a program, another number of rows none",
    hint="The first evaluation in batches of `size` rows should compile for that size. After it data of another number of rows, also "
    "of fewer rows than one batch, should cost no trace and no compile, and give the right loss. A short last batch is a new shape; "
    "so is each width of jnp.pad, and the whole data set in one batch. Pad with NumPy before JAX gets the batch.",
)
def test_other_numbers_of_rows_compile_nothing(lab):
    # Neither this size nor the rows of these last batches are used by another assert.
    params, size = random_params(lab), 5
    assert traced(evaluation(lab, params, 12, size)) > 0
    for count in (19, 4):
        assert traced(evaluation(lab, params, count, size)) == 0


# hardest --------------------------------------------------------------------------------------------------------------


def slots_of(lab, losses, valid):
    index, loss, taken = lab.call("hardest", losses, valid)
    return np.asarray(index), np.asarray(loss), np.asarray(taken)


def some_losses(lab, count):
    """Eight losses, the places of the valid ones, hardest first, and the mask."""
    losses = (lab.rng.permutation(ROWS) + lab.rng.uniform(0.2, 0.8, ROWS)).astype("float32")
    where = lab.rng.choice(ROWS, count, replace=False)
    valid = np.zeros(ROWS, bool)
    valid[where] = True
    return losses, sorted(where.tolist(), key=lambda i: -losses[i])[:4], valid


@graded(
    points=2,
    task="hardest",
    title="Only valid rows get into the slots",
    hint="The slots should hold valid rows, hardest first, with an integer for the index and a Boolean for filled. What stands in the "
    "other rows may be larger than any loss: it must be out before top_k looks.",
)
def test_only_valid_rows_get_into_the_slots(lab):
    losses, order, valid = some_losses(lab, 5)
    for garbage in (50.0, np.inf, np.nan):
        given = np.where(valid, losses, np.float32(garbage))
        index, loss, taken = slots_of(lab, given, valid)
        assert index.tolist() == order
        assert (index.dtype.kind, taken.dtype.kind) == ("i", "b")
        assert close(loss, losses[order])
        assert taken.tolist() == [True] * 4


@graded(
    points=1,
    task="hardest",
    title="Empty slots are marked",
    hint="With fewer valid rows than slots, the rest should be marked: filled False, loss 0, index -1. Without the mask, a "
    "reader takes them for rows.",
)
def test_empty_slots_are_marked(lab):
    for count in (0, 2):
        losses, order, valid = some_losses(lab, count)
        index, loss, taken = slots_of(lab, losses, valid)
        assert index.tolist() == order + [-1] * (4 - count)
        assert close(loss, [*losses[order], *[0.0] * (4 - count)])
        assert taken.tolist() == [True] * count + [False] * (4 - count)


@graded(
    points=1,
    task="hardest",
    title="A row with loss 0 is a row",
    hint="A valid row may have a loss of exactly 0, and its slot should be filled. A value that can be data is no mark for "
    "padding.",
)
def test_loss_of_zero_is_a_row(lab):
    losses, order, valid = some_losses(lab, 3)
    losses[order[2]] = 0.0
    index, _, taken = slots_of(lab, losses, valid)
    assert index.tolist() == [*order, -1]
    assert taken.tolist() == [True, True, True, False]


# remember, recall -----------------------------------------------------------------------------------------------------


def pushes(lab, keeps, garbage):
    """Batches of (values, keep), with garbage where nothing is kept, and the values that are kept, in order: one of them is 0."""
    batches, kept = [], []
    for keep in keeps:
        values = np.where(keep, lab.rng.uniform(1, 9, 4), garbage)
        if keep[2] and not kept:
            values[2] = 0.0
        batches.append((values.tolist(), [bool(k) for k in keep]))
        kept.extend(np.float64(np.float32(values[np.array(keep, bool)])).tolist())
    return batches, kept


def pushed(lab, keeps, garbage=np.nan):
    """The means of `push_all`, the means expected, the last ring, and all that was kept."""
    batches, kept = pushes(lab, keeps, garbage)
    means, ring = lab.call("push_all", batches)
    counts = np.cumsum([sum(keep) for keep in keeps])
    expected = [np.mean(kept[max(0, n - 5) : n]) if n else 0.0 for n in counts]
    return means, expected, ring, kept


@graded(
    points=2,
    task="remember",
    title="A ring that is not full is averaged over what it holds",
    hint="The mean should be over the values in the ring, and 0 for an empty one. Empty slots are no zeros: leave them out of "
    "sum and count, and divide by at least 1. A kept 0 is a value: the count says which slots are filled.",
)
def test_half_full_ring_is_averaged_over_its_values(lab):
    means, expected, _, _ = pushed(lab, [(0, 0, 0, 0), (1, 1, 1, 1)])
    assert close(means, expected)


@graded(
    points=1,
    task="remember",
    title="What is not kept leaves no trace",
    hint="A value with keep False should neither be written nor counted, wherever it stands among the four. It may be NaN and it may be "
    "a number: `keep` alone tells.",
)
def test_what_is_not_kept_leaves_no_trace(lab):
    for garbage in (np.nan, 50.0):
        means, expected, ring, kept = pushed(lab, [(0, 1, 1, 1), (0, 0, 0, 0), (1, 0, 0, 1)], garbage)
        assert close(means, expected)
        assert int(ring["count"]) == len(kept)


@graded(
    points=2,
    task="remember",
    title="The newest values overwrite the oldest",
    hint="A full ring should hold the last five, whatever came before. The next slot is count modulo five, and count goes on from "
    "push to push: it is the number of all that were ever kept.",
)
def test_newest_overwrite_the_oldest(lab):
    means, expected, ring, kept = pushed(lab, [(1, 1, 1, 1), (1, 0, 1, 1), (1, 1, 1, 1), (0, 1, 0, 0)])
    assert close(means, expected)
    assert close(sorted(np.asarray(ring["values"]).tolist()), sorted(kept[-5:]))
    assert int(ring["count"]) == len(kept)


@graded(
    points=1,
    task="remember",
    title="The ring keeps its shapes and dtypes",
    hint="The ring that comes back should have the form of the ring that went in: values float32 of shape (5,), count an "
    "integer. A carry that changes its form cannot be carried, and compiles again.",
)
def test_ring_keeps_its_form(lab):
    _, _, ring, _ = pushed(lab, [(1, 0, 1, 1)])
    assert ring.keys() == {"values", "count"}
    assert np.asarray(ring["values"]).dtype == np.float32
    assert np.shape(ring["values"]) == (5,)
    assert np.asarray(ring["count"]).dtype.kind == "i"
    assert np.shape(ring["count"]) == ()


# buckets --------------------------------------------------------------------------------------------------------------


def sequence(lab, length):
    """Numbers, the second of which is 0: a value like others."""
    values = lab.rng.uniform(1, 9, length).astype("float32")
    values[1] = 0.0
    return values


def bucket_of(lab, length):
    values = sequence(lab, length)
    padded, valid = lab.call("to_bucket", Host(values))
    assert close(np.asarray(padded)[:length], values)
    assert np.asarray(valid).tolist() == [True] * length + [False] * (len(padded) - length)
    return len(padded)


@graded(
    points=2,
    task="buckets",
    title="Each length goes into the smallest bucket that holds it, or is refused",
    hint="A length that equals a bucket should fit into it, and one more should go into the next. Longer than the largest should "
    "raise a ValueError: cutting changes the answer, and a size of its own is one more compile. The mask should have one True for each "
    "value. A value may be 0, so padding is told by the length.",
)
def test_smallest_bucket_that_holds(lab):
    assert [bucket_of(lab, length) for length in (3, 8, 9, 16, 17, 32)] == [8, 8, 16, 16, 32, 32]
    for length in (33, 40):
        with pytest.raises(StudentError) as caught:
            lab.call("to_bucket", Host(sequence(lab, length)))
        assert caught.value.is_a("ValueError")


@graded(
    points=3,
    task="buckets",
    title="A bucket costs one compile, whatever the lengths in it",
    hint="Sequences of a bucket that was not used before should cost one compile together, and later ones none. None at all means "
    "that no jitted function computes the means; more means a program for each length (a mask of the bare length, a count "
    "that is static), single operations outside of jit, or a jit in the loop.",
)
def test_bucket_costs_one_compile(lab):
    # The visible asserts use the bucket of 16 alone, and this is the first assert that uses the largest.
    for lengths, compiles in ((20, 31, 26), 1), ((19, 32, 28), 0):
        given = [sequence(lab, length) for length in lengths]
        seen = lab.observe("bucketed_means", [Host(values) for values in given])
        assert close(seen.value, [np.float64(values).mean() for values in given])
        assert sum(seen.other_compiles.values()) + seen.compiles == compiles


@graded(
    points=1,
    task="buckets",
    title="The means are those of the bare sequences",
    hint="Each mean should be over the values of its sequence, not over its bucket.",
)
def test_means_are_those_of_the_sequences(lab):
    lengths = lab.rng.permutation([17, 18, 22, 25, 29, 31])
    given = [sequence(lab, int(length)) for length in lengths]
    got = lab.call("bucketed_means", [Host(values) for values in given])
    assert close(got, [np.float64(values).mean() for values in given])
