"""Hidden asserts of lab 04.

Everything is compared with the same formulas in float64. Four rows of two features wherever JAX computes something, so that
asserts share their compiled operations; digits in pieces of 64. Numbers are of magnitude 0.5 to 2, and the errors of a draw
have one sign, so that no gradient of a bias cancels; limits lie between two rows' norms, with a tenth to spare on either side.

A right float32 answer is within 3e-6 of the reference; `TOLERANCE` leaves a factor of ten, and the wrong answers known are off by
1e-3 and more. For 512 digits XLA plans 169 kB of temporaries for the reference, at most 0.4 MB for pieces of up to 128 digits,
and 1.3 MB and more where all gradients exist at once.
"""

from dataclasses import dataclass

import numpy as np

from traceonce.data import digits
from traceonce.grade.hidden import Ref, graded, same_tree

TOLERANCE = 3e-5
BUDGET = 400_000
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
    """Rows whose gradients' norms leave room for a limit: see `limit_between`."""
    while True:
        params = {"w": draw(lab.rng, features), "b": draw(lab.rng)}
        x = draw(lab.rng, rows, features)
        errors = lab.rng.permutation(np.linspace(0.5, 3.5, rows)) * lab.rng.choice([-1.0, 1.0])
        y = np.asarray(np.float64(x) @ np.float64(params["w"]) + params["b"] - errors, "float32")
        given = Rows(params, x, y)
        if widest_gap(given.norms)[1] > 1.3:
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
    points=1,
    task="gradients",
    title="Each row has a gradient of its own",
    hint="Every leaf should have a leading axis, with the gradient of each row's own loss in it: not their sum or mean, and not "
    "divided by the number of rows.",
)
def test_each_row_has_its_gradient(lab):
    given = rows_of(lab)
    assert same(lab.call("gradients", given.params, given.x, given.y), given.gradients)


@graded(
    points=1,
    task="gradients",
    title="Rows are rows where x is square",
    hint="With as many rows as features a wrong axis raises nothing. Rows lie along axis 0: the second entry of in_axes should be 0.",
)
def test_rows_are_not_columns(lab):
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
    "above 1.",
)
def test_short_tree_stays(lab):
    tree = tree_of_norm(lab, lab.rng.uniform(0.3, 0.8))
    assert same(lab.call("clip", tree, float(lab.rng.uniform(2, 4))), shorter(tree, 1))


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
    for _ in range(2):
        given = rows_of(lab)
        limit = limit_between(given)
        assert same(lab.call("clipped_gradient", given.params, given.x, given.y, limit), given.clipped(limit))


@graded(
    points=2,
    task="clipped_gradient",
    title="The program does not grow with the rows",
    hint="Twice as many rows should give a program of the same length. A Python loop over the rows is unrolled while tracing: vmap makes "
    "the operations wider instead.",
)
def test_program_does_not_grow_with_the_rows(lab):
    few, many = (rows_of(lab, rows) for rows in (4, 8))
    sizes = [lab.plan("clipped_gradient", given.params, given.x, given.y, 1.0).operations for given in (few, many)]
    assert sizes[0] == sizes[1]


# clipped_digits -------------------------------------------------------------------------------------------------------


def some_digits(lab, count):
    """Random parameters, digits, and a limit that about half of their gradients pass; and what is to come out."""
    params = {
        "w": lab.rng.normal(0, 0.4, (64, 10)).astype("float32"),
        "b": lab.rng.normal(0, 1.0, 10).astype("float32"),
    }
    at = lab.rng.choice(len(PIXELS), count, replace=False)
    images, labels = PIXELS[at], LABELS[at]
    scores = np.float64(images) @ params["w"] + params["b"]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    delta = shares / shares.sum(axis=1, keepdims=True) - np.eye(10)[labels]
    norms = np.sqrt(np.sum(delta**2, axis=1) * (np.sum(np.float64(images) ** 2, axis=1) + 1))
    limit = float(np.quantile(norms, lab.rng.uniform(0.3, 0.5)))
    scaled = delta * np.minimum(1, limit / norms)[:, None] / count
    return (params, images, labels, limit), {"w": np.float64(images).T @ scaled, "b": scaled.sum(axis=0)}


def program_for_128(lab):
    """What is to come out for 128 digits, and the program that computes it."""
    arguments, expected = some_digits(lab, 128)
    return expected, lab.export("clipped_digits", *arguments)


def plan_for_512(lab):
    return lab.plan("clipped_digits", *some_digits(lab, 512)[0])


@graded(
    points=2,
    task="clipped_digits",
    title="Every digit is clipped, and counts once in the mean",
    hint="The value should be the mean over all n digits of their clipped gradients. Look for a mean that is clipped piece by piece, for a "
    "division by the number of pieces, and for a piece that is left out.",
)
def test_digits_are_clipped_one_by_one(lab):
    expected, program = lab.once(program_for_128)
    assert same(program.value, expected, 1e-4)


@graded(
    points=3,
    task="clipped_digits",
    title="The plan holds a piece of the gradients, not all of them",
    hint="For 512 digits the compiler should plan at most 400 kB of temporaries. All gradients at once are 1.3 MB, also where lax.map or a "
    "scan makes them in pieces and stacks them. Carry their sum instead.",
)
def test_plan_stays_in_the_budget(lab):
    assert lab.once(plan_for_512).temporaries <= BUDGET


@graded(
    points=2,
    task="clipped_digits",
    title="The program does not grow with the digits",
    hint="512 digits should need a program as long as 128 do. A Python loop over digits or over pieces is unrolled while tracing; a scan is "
    "one operation with a body.",
)
def test_program_does_not_grow_with_the_digits(lab):
    assert lab.once(plan_for_512).operations <= 1.1 * lab.once(program_for_128)[1].operations


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
    params = {"first": first, "rest": {"second": second, "scale": draw(lab.rng)}}
    strength = float(lab.rng.uniform(0.2, 0.9))
    squares = sum(np.sum(np.float64(w) ** 2) for w in (first["w"], second["w"], params["rest"]["scale"]))
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
        at = {name: scale * leaf for name, leaf in params.items()}
        got = lab.observe("penalty_gradient", at, strength, jit=True).value
        assert same(got, {"w": 2 * strength * np.float64(at["w"]), "b": 0.0})


# gradient_agrees ------------------------------------------------------------------------------------------------------


def agrees(lab, flaw, function="suspect", point=None):
    """What the learner's rung says of a function whose gradient is off by `flaw`."""
    point = {"w": draw(lab.rng, 2), "b": draw(lab.rng)} if point is None else point
    return bool(lab.observe("gradient_agrees", Ref(function), point, globals={"FLAW": flaw}).value)


HONEST = {"w": [0.0, 0.0], "b": 0.0}


@graded(
    points=1,
    task="gradient_agrees",
    title="A right gradient passes",
    hint="An honest function should pass, at any point. In float32 a tiny step drowns in rounding: values of 100 have steps of 8e-6, so "
    "take h = 0.01. Exact equality, or a narrower tolerance than 0.02, asks for too much.",
)
def test_honest_function_passes(lab):
    assert all(agrees(lab, HONEST) for _ in range(2))


@graded(
    points=3,
    task="gradient_agrees",
    title="A wrong gradient is noticed in every entry of every leaf",
    hint="A flaw should be noticed wherever it is: in any weight, in the bias, and in two weights with opposite signs. A sum of differences "
    "lets opposite ones cancel, and one leaf or one direction is not all.",
)
def test_flaws_are_noticed_everywhere(lab):
    size = float(lab.rng.uniform(0.1, 0.4))
    flaws = ({"w": [size, 0.0], "b": 0.0}, {"w": [0.0, -size], "b": 0.0}, {"w": [0.0, 0.0], "b": size})
    opposite = {"w": [size, -size], "b": 0.0}
    assert agrees(lab, HONEST)
    assert not any(agrees(lab, flaw) for flaw in (*flaws, opposite))


@graded(
    points=2,
    task="gradient_agrees",
    title="A NaN agrees with nothing",
    hint="A gradient that is NaN should not pass. Every comparison with NaN is False, so `difference > 0.02` lets it through: ask whether "
    "all are close, not whether one is far.",
)
def test_nan_agrees_with_nothing(lab):
    point = {"w": np.zeros(2, "float32"), "b": draw(lab.rng)}
    assert agrees(lab, HONEST)
    assert not agrees(lab, HONEST, "distance", point)


# train_step -----------------------------------------------------------------------------------------------------------


def one_step(lab):
    """A problem with its numbers, and what two compiled steps on it gave: the second with twice the rate."""
    given = rows_of(lab)
    limit = limit_between(given)
    lr, strength = float(lab.rng.uniform(0.02, 0.08)), float(lab.rng.uniform(0.2, 0.9))
    seen = lab.observe("train_step", given.params, given.x, given.y, lr, limit, strength, jit=True)
    return given, (lr, limit, strength), seen.value


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
    pull, clipped = 2 * strength * np.float64(given.params["w"]), given.clipped(limit)
    expected = {"w": given.params["w"] - lr * (clipped["w"] + pull), "b": given.params["b"] - lr * clipped["b"]}
    assert same(parts(value)[0], expected)


@graded(
    points=2,
    task="train_step",
    title="The loss is from before the step, with the penalty in it",
    hint="metrics['loss'] should be the mean of the row losses plus the penalty, of the parameters that came in. The loss of the new "
    "parameters belongs to the next step.",
)
def test_loss_is_from_before_the_step(lab):
    given, (_, _, strength), value = lab.once(one_step)
    expected = np.mean(given.errors**2) + strength * np.sum(np.float64(given.params["w"]) ** 2)
    assert same(parts(value)[1]["loss"], expected)


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
