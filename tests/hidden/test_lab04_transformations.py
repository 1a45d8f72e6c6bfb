"""Hidden asserts of lab 04.

Everything is compared with the same formulas in float64. Four rows of two features wherever JAX computes something, so that
asserts share their compiled operations; digits in pieces of 64. Numbers are of magnitude 0.5 to 2, and the errors of a draw
have one sign, so that no gradient of a bias cancels; limits lie between two rows' norms, with a tenth to spare on either side.

A right float32 answer is within 3e-6 of the reference; `TOLERANCE` leaves a factor of ten, and the wrong answers known are off by
1e-3 and more. The visible assert has 1024 digits, the hidden ones 960. For them XLA plans 169 kB of temporaries for the reference,
and 2.5 MB where all gradients exist at once. Right programs have 40 to 200 operations, whatever the number of rows; a loop over
32 rows or over 16 pieces has 700 and more.
"""

from dataclasses import dataclass

import numpy as np

from traceonce.data import digits
from traceonce.grade.hidden import Ref, graded, same_tree

TOLERANCE = 3e-5
BUDGET = 400_000
OPERATIONS = 300
COUNT = 960  # an odd number of pieces, and not the number of the visible assert
PIXELS, LABELS = digits()


@dataclass(frozen=True)
class Rows:
    """Parameters, rows x (n, d) and targets y (n,), float32."""

    params: dict
    x: np.ndarray
    y: np.ndarray

    @property
    def errors(self):
        w, b = np.float64(self.params["w"]), np.float64(self.params["b"])
        return np.float64(self.x) @ w + b - np.float64(self.y)

    @property
    def gradients(self):
        """Each row's gradient of its squared error."""
        return {"w": 2 * self.errors[:, None] * np.float64(self.x), "b": 2 * self.errors}

    @property
    def norms(self):
        return np.sqrt(np.sum(self.gradients["w"] ** 2, axis=1) + self.gradients["b"] ** 2)

    def clipped(self, limit):
        """The mean of the clipped gradients."""
        scale = np.minimum(1, limit / self.norms)
        return {"w": (self.gradients["w"] * scale[:, None]).mean(axis=0), "b": (self.gradients["b"] * scale).mean()}


def draw(rng, *shape):
    """Numbers of magnitude 0.5 to 2 and random sign."""
    return np.asarray(rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 2.0, shape), "float32")


def rows_of(lab, rows=4, features=2):
    """Rows whose gradients' norms, where they are few, leave room for a limit: see `limit_between`."""
    while True:
        params = {"w": draw(lab.rng, features), "b": draw(lab.rng)}
        x = draw(lab.rng, rows, features)
        errors = lab.rng.permutation(np.linspace(0.5, 3.5, rows)) * lab.rng.choice([-1.0, 1.0])
        y = np.asarray(np.float64(x) @ np.float64(params["w"]) + params["b"] - errors, "float32")
        given = Rows(params, x, y)
        # Columns in place of rows, and one target for all, have to be other numbers.
        unlike = min(abs(x[0, 1] - x[1, 0]), abs(y[0] - y[1])) > 0.1
        if rows > 4 or (unlike and widest_gap(given.norms)[1] > 1.3):
            return given


def widest_gap(norms):
    """The middle of the widest gap between two norms, and the ratio of the two."""
    ordered = np.sort(norms)
    at = int(np.argmax(ordered[1:] / ordered[:-1]))
    return float(np.sqrt(ordered[at] * ordered[at + 1])), float(ordered[at + 1] / ordered[at])


def limit_between(given):
    """A limit that some rows are clearly over, and some under."""
    return widest_gap(given.norms)[0]


def same(got, expected, tolerance=TOLERANCE):
    return same_tree(got, expected, rtol=tolerance, atol=tolerance)


# gradients ------------------------------------------------------------------------------------------------------------


@graded(
    points=2,
    task="gradients",
    title="Each row has a gradient of its own, also where x is square",
    hint="Every leaf should have a leading axis, with the gradient of each row's own loss in it: not their sum or mean, and not "
    "divided by the number of rows. With as many rows as features a wrong axis raises nothing: rows lie along axis 0 of x.",
)
def test_each_row_has_its_gradient(lab):
    given = rows_of(lab, rows=2)
    assert same(lab.call("gradients", given.params, given.x, given.y), given.gradients)


# clip -----------------------------------------------------------------------------------------------------------------


def tree_of_norm(lab, norm):
    tree = {"w": draw(lab.rng, 2).astype("float64"), "b": draw(lab.rng).astype("float64")}
    scale = norm / np.sqrt(np.sum(tree["w"] ** 2) + tree["b"] ** 2)
    return {name: np.float32(leaf * scale) for name, leaf in tree.items()}


def shorter(tree, factor):
    return {name: np.float64(leaf) * factor for name, leaf in tree.items()}


@graded(
    points=2,
    task="clip",
    title="A long tree gets the limit as its norm, and keeps its direction",
    hint="All leaves should shrink by one factor, limit / norm, with the norm over all leaves together: not a norm for each leaf, not "
    "each number by itself, and not the square of the norm.",
)
def test_long_tree_is_clipped(lab):
    norm, factor = lab.rng.uniform(4, 8), lab.rng.uniform(0.2, 0.6)
    tree = tree_of_norm(lab, norm)
    assert same(lab.call("clip", tree, float(norm * factor)), shorter(tree, factor))


@graded(
    points=1,
    task="clip",
    title="A short tree stays as it is",
    hint="A tree under the limit should come back as it was. A factor of limit / norm alone makes it longer: the factor should never be "
    "above 1. And it should do so inside jit and vmap: a Python `if` on the norm asks a tracer.",
)
def test_short_tree_stays(lab):
    tree, limit = tree_of_norm(lab, lab.rng.uniform(0.3, 0.8)), float(lab.rng.uniform(2, 4))
    assert same(lab.call("clip", tree, limit), shorter(tree, 1))
    assert lab.trace("clip", tree, limit) == 1


@graded(
    points=2,
    task="clip",
    title="Zeros stay zeros",
    hint="A gradient of zero should stay zero. Dividing the tree by its norm is 0 / 0, which is NaN, and one NaN row is enough to lose "
    "the mean.",
)
def test_zeros_stay_zeros(lab):
    zeros = {"w": np.zeros(2, "float32"), "b": np.float32(0)}
    assert same(lab.call("clip", zeros, float(lab.rng.uniform(0.5, 2))), shorter(zeros, 1))


@graded(
    points=1,
    task="clip",
    title="Any tree will do",
    hint='The tree may be any nest of dicts, lists and arrays: jax.tree.leaves finds the leaves and jax.tree.map keeps the form. "w" and '
    '"b" are names of this model only.',
)
def test_any_tree_is_clipped(lab):
    first, second = tree_of_norm(lab, 3.0), tree_of_norm(lab, 4.0)
    factor = lab.rng.uniform(0.2, 0.6)
    got = lab.call("clip", [first, {"last": second}], float(5 * factor))
    assert same(got, [shorter(first, factor), {"last": shorter(second, factor)}])


# clipped_gradient -----------------------------------------------------------------------------------------------------


def rows_and_program(lab):
    """What is to come out for 32 rows, of which half are clipped, and the program that computes it."""
    given = rows_of(lab, 32)
    limit = float(np.median(given.norms))
    return given.clipped(limit), lab.export("clipped_gradient", given.params, given.x, given.y, limit)


@graded(
    points=1,
    task="clipped_gradient",
    title="A limit that nothing reaches gives the gradient of the mean loss",
    hint="Without anything to clip, the result should be the mean over the rows: their sum divided by the number of rows, once. Neither "
    "the sum, nor a division by the rows that were clipped.",
)
def test_free_limit_gives_the_mean(lab):
    given = rows_of(lab)
    got = lab.call("clipped_gradient", given.params, given.x, given.y, float(given.norms.max() * 3))
    assert same(got, given.clipped(np.inf))


@graded(
    points=3,
    task="clipped_gradient",
    title="Each row's gradient is clipped, then the mean is taken",
    hint="Each row should be clipped by itself, to the limit as it is given, and the mean taken after that. A mean that is clipped keeps "
    "the direction of its wildest row; gradients that are divided by n before they are clipped are too short to be clipped.",
)
def test_rows_are_clipped_before_the_mean(lab):
    expected, program = lab.once(rows_and_program)
    assert same(program.value, expected)


@graded(
    points=2,
    task="clipped_gradient",
    title="The program does not grow with the rows",
    hint="32 rows should need about as many operations as four. A Python loop over the rows is unrolled while tracing: vmap makes the "
    "operations wider instead.",
)
def test_program_does_not_grow_with_the_rows(lab):
    assert lab.once(rows_and_program)[1].operations <= OPERATIONS


# clipped_digits -------------------------------------------------------------------------------------------------------


def digits_and_program(lab):
    """What is to come out for 960 digits, of which more than half are clipped, and the program that computes it."""
    params = {
        "w": lab.rng.normal(0, 0.4, (64, 10)).astype("float32"),
        "b": lab.rng.normal(0, 1.0, 10).astype("float32"),
    }
    at = lab.rng.choice(len(PIXELS), COUNT, replace=False)
    images, labels = PIXELS[at], LABELS[at]
    delta = 2 * (np.float64(images) @ params["w"] + params["b"] - np.eye(10)[labels])
    norms = np.sqrt(np.sum(delta**2, axis=1) * (np.sum(np.float64(images) ** 2, axis=1) + 1))
    limit = float(np.quantile(norms, lab.rng.uniform(0.3, 0.5)))
    scaled = delta * np.minimum(1, limit / norms)[:, None] / COUNT
    expected = {"w": np.float64(images).T @ scaled, "b": scaled.sum(axis=0)}
    return expected, lab.export("clipped_digits", params, images, labels, limit)


@graded(
    points=2,
    task="clipped_digits",
    title="Every digit is clipped, and counts once in the mean",
    hint="The value should be the mean over all n digits of their clipped gradients, for any multiple of 64. Look for a mean that is clipped "
    "piece by piece, for a division by the number of pieces, for a piece that is left out, and for a number that is written down.",
)
def test_digits_are_clipped_one_by_one(lab):
    expected, program = lab.once(digits_and_program)
    assert same(program.value, expected, 2e-4)


@graded(
    points=3,
    task="clipped_digits",
    title="The plan holds a piece of the gradients, not all of them",
    hint="For up to 1024 digits the compiler should plan at most 400 kB of temporaries. All gradients at once are 2.7 MB, also where lax.map "
    "or a scan makes them in pieces and stacks them. Carry their sum instead.",
)
def test_plan_stays_in_the_budget(lab):
    assert lab.once(digits_and_program)[1].temporaries <= BUDGET


@graded(
    points=2,
    task="clipped_digits",
    title="The program does not grow with the digits",
    hint="1024 digits should need about as many operations as 64 do. A Python loop over digits or over pieces is unrolled while tracing; a "
    "scan is one operation with a body.",
)
def test_program_does_not_grow_with_the_digits(lab):
    assert lab.once(digits_and_program)[1].operations <= OPERATIONS


# penalty --------------------------------------------------------------------------------------------------------------


def weights_only(lab):
    return {"w": draw(lab.rng, 2), "b": np.float32(0)}


@graded(
    points=1,
    task="penalty",
    title="The penalty is strength times the sum of squares",
    hint="The value should be a scalar, strength * sum of w²: with the strength that is given, the sum and not the mean, no factor of a "
    "half.",
)
def test_penalty_is_the_sum_of_squares(lab):
    params, strength = weights_only(lab), float(lab.rng.uniform(0.2, 0.9))
    assert same(lab.call("penalty", params, strength), strength * np.sum(np.float64(params["w"]) ** 2))


@graded(
    points=2,
    task="penalty",
    title="The bias is left out",
    hint="Another bias should give the same penalty. Where the bias is 0, a penalty on it does not show: test with one that is not.",
)
def test_bias_is_left_out(lab):
    params, strength = weights_only(lab), float(lab.rng.uniform(0.2, 0.9))
    with_bias = params | {"b": draw(lab.rng)}
    assert same(lab.call("penalty", with_bias, strength), strength * np.sum(np.float64(params["w"]) ** 2))


@graded(
    points=1,
    task="penalty",
    title="Layers inside layers count",
    hint='Every leaf that is not named "b" should count, at any depth and under any name. params["w"] knows one layer only; paths know '
    "all of them.",
)
def test_nested_layers_count(lab):
    first, second = ({"w": draw(lab.rng, 2), "b": draw(lab.rng)} for _ in range(2))
    params = {"blocks": {"first": first, "second": second}, "scale": draw(lab.rng), "base": draw(lab.rng)}
    strength = float(lab.rng.uniform(0.2, 0.9))
    squares = sum(np.sum(np.float64(w) ** 2) for w in (first["w"], second["w"], params["scale"], params["base"]))
    assert same(lab.call("penalty", params, strength), strength * squares)


@graded(
    points=2,
    task="penalty",
    title="Its gradient is right, also at zero",
    hint="The gradient should be 2 * strength * w, and 0 at zero. A norm that is squared again has a NaN there, from the root; a frozen "
    "factor loses half; an `if` on the values cannot be traced.",
)
def test_penalty_has_a_gradient(lab):
    params, strength = weights_only(lab), float(lab.rng.uniform(0.2, 0.9))
    for scale in (1, 0):
        at = {name: np.float32(scale * leaf) for name, leaf in params.items()}
        got = lab.call("penalty_gradient", at, strength)
        assert same(got, {"w": 2 * strength * np.float64(at["w"]), "b": 0.0})
    assert lab.trace("penalty_gradient", params, strength) == 1


# gradient_agrees ------------------------------------------------------------------------------------------------------


HONEST = {"w": [[0.0, 0.0], [0.0, 0.0]], "b": 0.0}


def agrees(lab, flaw, function="suspect", point=None):
    """What the learner's rung says of a function whose gradient is off by `flaw`."""
    point = {"w": draw(lab.rng, 2, 2), "b": draw(lab.rng)} if point is None else point
    return bool(lab.observe("gradient_agrees", Ref(function), point, globals={"FLAW": flaw}).value)


def honest_agrees(lab):
    return agrees(lab, HONEST)


@graded(
    points=1,
    task="gradient_agrees",
    title="A right gradient passes",
    hint="An honest function should pass, at any point. In float32 a tiny step drowns in rounding: values of 100 have steps of 8e-6, so "
    "take h = 0.01. Exact equality, or a narrower tolerance than 0.02, asks for too much.",
)
def test_honest_function_passes(lab):
    assert lab.once(honest_agrees)


@graded(
    points=3,
    task="gradient_agrees",
    title="A wrong gradient is noticed in every entry of every leaf",
    hint="A flaw should be noticed wherever it is: in any weight, in the bias, and in two weights with opposite signs. A sum of differences "
    "lets opposite ones cancel, and one leaf, one row or one direction is not all. And it should be noticed from 0.02 on, however large "
    "the gradient is.",
)
def test_flaws_are_noticed_everywhere(lab):
    size = float(lab.rng.uniform(0.1, 0.4))
    assert lab.once(honest_agrees)
    for w, b in (([[0.0, 0.0], [size, -size]], 0.0), (HONEST["w"], size)):
        assert not agrees(lab, {"w": w, "b": b})
    # A gradient of 2 in b: 0.035 is over 0.02, and under 0.02 of what is relative to it.
    point = {"w": draw(lab.rng, 2, 2), "b": np.float32(2)}
    assert not agrees(lab, HONEST | {"b": 0.035}, point=point)


@graded(
    points=2,
    task="gradient_agrees",
    title="A NaN agrees with nothing",
    hint="A gradient that is NaN should not pass. Every comparison with NaN is False, so `difference > 0.02` lets it through: ask whether "
    "all are close, not whether one is far.",
)
def test_nan_agrees_with_nothing(lab):
    point = {"w": np.zeros((2, 2), "float32"), "b": draw(lab.rng)}
    assert lab.once(honest_agrees)
    assert not agrees(lab, HONEST, "distance", point)


# train_step -----------------------------------------------------------------------------------------------------------


def after_step(given, lr, limit, strength):
    """The rows with the parameters after a step."""
    pull, clipped = 2 * strength * np.float64(given.params["w"]), given.clipped(limit)
    new = {"w": given.params["w"] - lr * (clipped["w"] + pull), "b": given.params["b"] - lr * clipped["b"]}
    return Rows(new, given.x, given.y)


def objective(given, strength):
    return np.mean(given.errors**2) + strength * np.sum(np.float64(given.params["w"]) ** 2)


def one_step(lab):
    """A problem with its numbers, and what a step on it gave. The loss after the step is another one."""
    while True:
        given = rows_of(lab)
        limit = limit_between(given)
        lr, strength = float(lab.rng.uniform(0.02, 0.08)), float(lab.rng.uniform(0.2, 0.9))
        if abs(objective(after_step(given, lr, limit, strength), strength) / objective(given, strength) - 1) > 0.01:
            break
    value = lab.call("train_step", given.params, given.x, given.y, lr, limit, strength)
    return given, (lr, limit, strength), value


def parts(value):
    assert isinstance(value, tuple | list)
    assert len(value) == 2
    return value


@graded(
    points=2,
    task="train_step",
    title="The step goes down the clipped gradient and the penalty's",
    hint="The new parameters should be params - lr * (clipped gradient + gradient of the penalty). The penalty is added after the clipping, "
    "and it leaves the bias alone.",
)
def test_step_goes_down_both_gradients(lab):
    given, (lr, limit, strength), value = lab.once(one_step)
    assert same(parts(value)[0], after_step(given, lr, limit, strength).params)


@graded(
    points=1,
    task="train_step",
    title="The step can be compiled, with one trace for any numbers",
    hint="Under jit, rate, limit and strength are tracers: an `if` on one of them, or float(...) of a loss, cannot be traced. Return arrays "
    "and choose with jnp.where.",
)
def test_step_traces_once(lab):
    given = rows_of(lab)
    assert lab.trace("train_step", given.params, given.x, given.y, 0.05, 1.0, 0.1, repeat=2) == 1


@graded(
    points=2,
    task="train_step",
    title="The loss is from before the step, with the penalty in it",
    hint="metrics['loss'] should be the mean of the row losses plus the penalty, of the parameters that came in. The loss of the new "
    "parameters belongs to the next step.",
)
def test_loss_is_from_before_the_step(lab):
    given, (_, _, strength), value = lab.once(one_step)
    assert same(parts(value)[1]["loss"], objective(given, strength))


@graded(
    points=1,
    task="train_step",
    title="The share of clipped rows is told",
    hint="metrics['clipped'] should be the share of rows whose own gradient is longer than the limit, before clipping: over all leaves, "
    "and as a share and not a count.",
)
def test_share_of_clipped_rows(lab):
    given, (_, limit, _), value = lab.once(one_step)
    assert same(parts(value)[1]["clipped"], np.mean(given.norms > limit))
