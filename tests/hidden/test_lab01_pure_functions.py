"""Hidden asserts of lab 01.

Data are random and of magnitude 0.5 to 2: nothing is so near zero that leaving it out goes unnoticed. All errors
``w·x + b - y`` of a draw have one sign, so the gradient of the bias never cancels. Shapes are fixed, and the same wherever another
one is not the point: a new shape costs every submission a dozen compiles. Seven rows of three features are neither the example's four nor
square. Asserts about the same call share it, and what the functions do under `jax.jit` is traced and not compiled: values come from the same calls without it.

The reference is the same formula in float64. Over 60 000 draws a right float32 answer was within 7e-7 (absolute, plus
relative) of it: at most 7 rows of 3 features are summed. `TOLERANCE` leaves a factor of thirty. The nearest wrong answer
in as many draws (old weights) was at twice the tolerance, the others at a hundred times and more.
"""

from dataclasses import dataclass

import numpy as np

from traceonce.grade.hidden import Node, StudentError, graded, same_tree

TOLERANCE = 2e-5


@dataclass(frozen=True)
class Problem:
    """Parameters (float32 leaves), rows `x` of shape (n, d), targets `y` of shape (n,), and a learning rate."""

    params: dict
    x: np.ndarray
    y: np.ndarray
    lr: float

    @property
    def errors(self):
        w, b = np.float64(self.params["w"]), np.float64(self.params["b"])
        return np.float64(self.x) @ w + b - np.float64(self.y)


def draw(rng, *shape):
    """Numbers of magnitude 0.5 to 2 and random sign."""
    return np.asarray(rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 2.0, shape), "float32")


def problem(lab, rows=7, features=3):
    params = {"w": draw(lab.rng, features), "b": draw(lab.rng)}
    x = draw(lab.rng, rows, features)
    offset = lab.rng.choice([-1.0, 1.0]) * lab.rng.uniform(0.5, 2.0, rows)
    y = np.asarray(np.float64(x) @ np.float64(params["w"]) + params["b"] - offset, "float32")
    return Problem(params, x, y, float(lab.rng.uniform(0.02, 0.08)))


def square_problem(lab):
    """As many rows as features, where neither a sum over the wrong axis nor columns for rows give the same loss."""
    while True:
        given = problem(lab, rows=3, features=3)
        w, x, offset = np.float64(given.params["w"]), np.float64(given.x), given.params["b"] - np.float64(given.y)
        others = [np.mean((predictions + offset) ** 2) for predictions in ((x * w).sum(axis=0), x.T @ w)]
        if np.min(np.abs(others - squared_loss(given))) > 0.01:
            return given


def squared_loss(given):
    return np.mean(given.errors**2)


def squared_step(given):
    """Parameters after one step on the mean squared error: its gradient is 2 * mean(error * row)."""
    pull = 2 * given.errors / len(given.errors)
    return {"w": given.params["w"] - given.lr * pull @ given.x, "b": given.params["b"] - given.lr * pull.sum()}


def robust_loss(given):
    return np.mean(np.sqrt(1 + given.errors**2) - 1)


def robust_step(given):
    """Parameters after one step on mean(sqrt(1 + error²) - 1): its gradient is mean(error / sqrt(1 + error²) * row)."""
    pull = given.errors / np.sqrt(1 + given.errors**2) / len(given.errors)
    return {"w": given.params["w"] - given.lr * pull @ given.x, "b": given.params["b"] - given.lr * pull.sum()}


def close(got, expected):
    """Equal within the tolerance, and of the same shape: nothing is broadcast."""
    return np.shape(got) == np.shape(expected) and np.allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE)


def pair(value):
    """The two parts of what a step returned: a tuple, a list, or a named tuple."""
    parts = tuple(value.fields.values()) if isinstance(value, Node) else value
    assert isinstance(parts, tuple | list)
    assert len(parts) == 2
    return parts


def refuses(lab, array, index):
    """Whether `checked_set` raises an IndexError here, and is no function that always raises."""
    lab.call("checked_set", array, 0, 1.0)
    try:
        lab.call("checked_set", array, index, 1.0)
    except StudentError as error:
        return error.is_a("IndexError")
    return False


# predict_one ----------------------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="predict_one",
    title="One row gives one number",
    hint="The result should have shape (). `w * row` has one entry for each feature: add them up, as jnp.dot does.",
)
def test_one_row_gives_one_number(lab):
    given = problem(lab, features=2)
    assert np.shape(lab.call("predict_one", given.params, given.x[0])) == ()


@graded(
    points=1,
    task="predict_one",
    title="The prediction is w·row + b",
    hint="The number should be w·row + b. Is the bias in it, and once?",
)
def test_prediction_has_the_bias(lab):
    given = problem(lab, features=2)
    assert close(lab.call("predict_one", given.params, given.x[0]), given.errors[0] + np.float64(given.y[0]))


@graded(
    points=1,
    task="predict_one",
    title="The prediction holds for any number of features",
    hint="The number should be w·row + b for rows of any length. params['w'][0] and params['w'][1] are two features: jnp.dot "
    "takes as many as there are.",
)
def test_prediction_for_any_number_of_features(lab):
    given = problem(lab)
    assert close(lab.call("predict_one", given.params, given.x[0]), given.errors[0] + np.float64(given.y[0]))


# mse ------------------------------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="mse",
    title="The loss is a mean over however many rows there are",
    hint="The value should hold for any number of rows. Divide by the rows there are (jnp.mean), not by four, and do not "
    "leave the sum undivided.",
)
def test_loss_is_a_mean_over_the_rows(lab):
    given = problem(lab)
    assert close(lab.call("mse", given.params, given.x, given.y), squared_loss(given))


@graded(
    points=1,
    task="mse",
    title="Each row's features are added up, not each feature's rows",
    hint="With as many rows as features a wrong axis raises no error, so look at the axis of your sum. The features of a "
    "row lie along axis 1 of x.",
)
def test_features_are_summed_for_each_row(lab):
    given = square_problem(lab)
    assert close(lab.call("mse", given.params, given.x, given.y), squared_loss(given))


@graded(
    points=1,
    task="mse",
    title="The loss can be compiled",
    hint="Under jax.jit the value is a tracer: float(...) or .item() on it raises. Return the array.",
)
def test_loss_can_be_compiled(lab):
    given = problem(lab)
    assert lab.trace("mse", given.params, given.x, given.y) == 1


# sgd_step -------------------------------------------------------------------------------------------------------------


def one_step(lab):
    """A problem, and what was seen in one step on it."""
    given = problem(lab)
    return given, lab.observe("sgd_step", given.params, given.x, given.y, given.lr)


@graded(
    points=1,
    task="sgd_step",
    title="The step returns a pair",
    hint="Two things should come back: the new parameters, and a dict with the loss. Parameters alone, or a bare loss, are one.",
)
def test_step_returns_a_pair(lab):
    _, seen = lab.once(one_step)
    after, metrics = pair(seen.value)
    assert set(after) == {"w", "b"}
    assert isinstance(metrics, dict)


@graded(
    points=2,
    task="sgd_step",
    title="The weights that come back have moved down the gradient",
    hint="The returned w should be w - lr * gradient, for any number of rows. If it is the old w, the update was computed and not returned; if it "
    "moved the wrong way, look at the sign.",
    needs=("test_step_returns_a_pair",),
)
def test_weights_move_down_the_gradient(lab):
    given, seen = lab.once(one_step)
    after, _ = pair(seen.value)
    assert close(after["w"], squared_step(given)["w"])


@graded(
    points=1,
    task="sgd_step",
    title="The bias is updated too",
    hint="The returned b should be b - lr * gradient, for any number of rows. jax.tree.map visits every leaf, so that none is forgotten.",
    needs=("test_step_returns_a_pair",),
)
def test_bias_moves_too(lab):
    given, seen = lab.once(one_step)
    after, _ = pair(seen.value)
    assert close(after["b"], squared_step(given)["b"])


@graded(
    points=1,
    task="sgd_step",
    title="The learning rate is the argument",
    hint="Twice the rate should move the parameters twice as far. A rate from a global, or a number in the code, does not.",
    needs=("test_step_returns_a_pair",),
)
def test_rate_is_the_argument(lab):
    given, seen = lab.once(one_step)
    again = lab.call("sgd_step", given.params, given.x, given.y, 2 * given.lr)
    once, twice = (pair(value)[0]["b"] - given.params["b"] for value in (seen.value, again))
    assert abs(once) > 100 * TOLERANCE
    assert close(twice, 2 * once)


@graded(
    points=1,
    task="sgd_step",
    title="The step leaves its arguments alone",
    hint="The dict that came in should be as it was, and its arrays still there: writing into it, or donating it "
    "(donate_argnums), takes the caller's parameters away. Build a new one, with jax.tree.map or {**params, 'w': ...}.",
    needs=("test_step_returns_a_pair",),
)
def test_step_leaves_its_arguments_alone(lab):
    given, seen = lab.once(one_step)
    after, _ = pair(seen.value)
    assert not np.array_equal(after["b"], given.params["b"])
    assert same_tree(seen.arguments[0], given.params)


@graded(
    points=1,
    task="sgd_step",
    title="The step returns the loss from before its update",
    hint="metrics['loss'] should be the loss of the parameters that came in. jax.value_and_grad gives it with the gradient.",
    needs=("test_step_returns_a_pair",),
)
def test_loss_is_from_before_the_update(lab):
    given, seen = lab.once(one_step)
    _, metrics = pair(seen.value)
    assert close(metrics["loss"], squared_loss(given))


@graded(
    points=2,
    task="sgd_step",
    title="The step can be compiled, with one trace for several calls",
    hint="jax.jit(sgd_step) should trace once for calls with other numbers of the same shapes. What needs a number at "
    "trace time breaks it: float(loss), .item(), an `if` on the rate, a static rate.",
    needs=("test_step_returns_a_pair",),
)
def test_step_compiles_with_one_trace(lab):
    given = problem(lab)
    assert lab.trace("sgd_step", given.params, given.x, given.y, given.lr, repeat=3) == 1


# checked_set ----------------------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="checked_set",
    title="The new array comes back",
    hint="The value should be in the array that is returned. array.at[index].set(value) is a new array: return that one.",
)
def test_new_array_comes_back(lab):
    array, value = draw(lab.rng, 5), float(draw(lab.rng)) + 5
    index = int(lab.rng.integers(1, 4))
    expected = array.copy()
    expected[index] = value
    assert close(lab.call("checked_set", array, index, value), expected)


@graded(
    points=1,
    task="checked_set",
    title="An index past the end raises an IndexError",
    hint="For n elements the first index outside is n. JAX drops such a write and says nothing, so compare before you set.",
)
def test_index_past_the_end_is_refused(lab):
    array = draw(lab.rng, 5)
    assert refuses(lab, array, 5)
    assert refuses(lab, array, 5 + int(lab.rng.integers(1, 100)))


@graded(
    points=1,
    task="checked_set",
    title="An index before the start raises an IndexError",
    hint="-n is the first element and -n - 1 is outside. A check of the upper bound alone lets it through, and JAX drops it.",
)
def test_index_before_the_start_is_refused(lab):
    array = draw(lab.rng, 5)
    assert refuses(lab, array, -6)
    assert refuses(lab, array, -6 - int(lab.rng.integers(1, 100)))


@graded(
    points=1,
    task="checked_set",
    title="Every index that a list accepts is accepted",
    hint="0, n - 1, -1 and -n are all inside. A check that refuses negative indices, or the last element, is too strict.",
)
def test_both_ends_are_accepted(lab):
    array = draw(lab.rng, 5)
    for index in (0, 4, -1, -5):
        expected = array.copy()
        expected[index] = 7.0
        assert close(lab.call("checked_set", array, index, 7.0), expected)


@graded(
    points=1,
    task="checked_set",
    title="With two axes, the first one counts",
    hint="An array of 3 rows and 2 columns has length 3: index 2 is a row, and 3 is outside. array.size is 6, and the last "
    "axis has length 2.",
)
def test_rows_are_counted_not_elements(lab):
    array = draw(lab.rng, 3, 2)
    expected = array.copy()
    expected[2] = 7.0
    assert close(lab.call("checked_set", array, 2, 7.0), expected)
    assert refuses(lab, array, 3)
    assert refuses(lab, array, 4)


# repaired_step --------------------------------------------------------------------------------------------------------


def state_of(lab, given):
    return {"params": given.params, "steps": np.int32(lab.rng.integers(3, 100))}


def one_repaired_step(lab):
    """A problem, a state, and what was seen in one step on them."""
    given = problem(lab)
    state = state_of(lab, given)
    return given, state, lab.observe("repaired_step", state, given.x, given.y, given.lr)


@graded(
    points=1,
    task="repaired_step",
    title="The repaired step returns a pair",
    hint="Two things should come back: the new state, with params and steps in it, and a dict with the loss.",
)
def test_repaired_step_returns_a_pair(lab):
    _, _, seen = lab.once(one_repaired_step)
    after, metrics = pair(seen.value)
    assert set(after) == {"params", "steps"}
    assert isinstance(metrics, dict)


@graded(
    points=2,
    task="repaired_step",
    title="The update is in the state that comes back",
    hint="The parameters in the new state should be p - lr * gradient of robust_loss, for any number of rows. An .at[...] result that nobody keeps "
    "changes nothing: keep the new leaf, and the new dict around it.",
    needs=("test_repaired_step_returns_a_pair",),
)
def test_update_is_in_the_new_state(lab):
    given, _, seen = lab.once(one_repaired_step)
    after, _ = pair(seen.value)
    assert close(after["params"]["w"], robust_step(given)["w"])
    assert close(after["params"]["b"], robust_step(given)["b"])


@graded(
    points=1,
    task="repaired_step",
    title="No global decides the rate",
    hint="The result should not depend on the global LR. Use the argument lr; compiled, a global would stay what it was at "
    "the first call.",
    needs=("test_repaired_step_returns_a_pair",),
)
def test_no_global_decides_the_rate(lab):
    given = problem(lab)
    seen = lab.observe("repaired_step", state_of(lab, given), given.x, given.y, given.lr, globals={"LR": 3.0})
    after, _ = pair(seen.value)
    assert close(after["params"]["b"], robust_step(given)["b"])


@graded(
    points=1,
    task="repaired_step",
    title="The metric is returned",
    hint="The second part of the result should be {'loss': the loss before the step}. A value in a global list is a tracer "
    "once the step is compiled.",
    needs=("test_repaired_step_returns_a_pair",),
)
def test_metric_is_returned(lab):
    given, _, seen = lab.once(one_repaired_step)
    _, metrics = pair(seen.value)
    assert close(metrics["loss"], robust_loss(given))


@graded(
    points=1,
    task="repaired_step",
    title="No global is written",
    hint="The step should change no global: not HISTORY, no counter, no rate. Compiled, it would do so once, while "
    "tracing. What changes is returned.",
    needs=("test_repaired_step_returns_a_pair",),
)
def test_no_global_is_written(lab):
    _, _, seen = lab.once(one_repaired_step)
    pair(seen.value)
    assert not seen.changed_globals


@graded(
    points=1,
    task="repaired_step",
    title="The step counts itself",
    hint="steps in the new state should be one higher than in the state that came in, whatever it was.",
    needs=("test_repaired_step_returns_a_pair",),
)
def test_step_counts_itself(lab):
    _, state, seen = lab.once(one_repaired_step)
    after, _ = pair(seen.value)
    assert int(after["steps"]) == int(state["steps"]) + 1


@graded(
    points=1,
    task="repaired_step",
    title="The state that came in is left alone, at every level",
    hint="The caller's state should be as it was, and its arrays still there (donate_argnums takes them). dict(state) copies "
    "the outer dict alone: state['params'] is the same inner dict in both. Build a new inner one.",
    needs=("test_repaired_step_returns_a_pair",),
)
def test_state_is_left_alone(lab):
    given, state, seen = lab.once(one_repaired_step)
    after, _ = pair(seen.value)
    assert not np.array_equal(after["params"]["b"], given.params["b"])
    assert same_tree(seen.arguments[0], state)


@graded(
    points=1,
    task="repaired_step",
    title="The repaired step can be compiled, with one trace for several calls",
    hint="jax.jit(repaired_step) should trace once for calls with other numbers of the same shapes. int(state['steps']) "
    "or float(loss) inside needs a number at trace time.",
    needs=("test_repaired_step_returns_a_pair",),
)
def test_repaired_step_compiles_with_one_trace(lab):
    given = problem(lab)
    state = state_of(lab, given)
    assert lab.trace("repaired_step", state, given.x, given.y, given.lr, repeat=3) == 1
