"""Hidden asserts of lab 12: whole runs of the repository, its counts and plans, and its own tests on sabotaged code.

Every run has the shapes of the lab's small set, and so shares one program with all the others. What a run without dropout
must give is computed here in float64: the same order of rows, the same steps.
"""

import math

import numpy as np
import pytest

from traceonce.grade.hidden import Host, Key, StudentError, graded, same_tree

ROWS, BATCH, HEIGHT, WIDTH, HIDDEN = 40, 16, 8, 6, 16
ANALYSED = 251
EPOCHS_OF_A_NIGHT = 10**6  # a run that goes on runs into the limit of a call
STEPS = math.ceil(ROWS / BATCH)


def parameters(rng, scale):
    return {
        "w1": rng.normal(0, scale, (HEIGHT * WIDTH, HIDDEN)).astype("float32"),
        "b1": rng.normal(0, scale, HIDDEN).astype("float32"),
        "w2": rng.normal(0, scale, (HIDDEN, 10)).astype("float32"),
        "b2": rng.normal(0, scale, 10).astype("float32"),
    }


def problem(lab, **changes):
    """A state in the middle of a run, rows, settings and a key."""
    rng = lab.rng
    state = {
        "params": parameters(rng, 0.3),
        "velocity": parameters(rng, 0.01),
        "step": np.array(rng.integers(10, 1000), "int32"),
    }
    x, y = rng.random((ROWS, HEIGHT * WIDTH)).astype("float32"), rng.integers(0, 10, ROWS).astype("int32")
    config = {"batch": BATCH, "seed": int(rng.integers(1000)), "keep": 1.0, "rough": 0.0}
    config |= {"rate": rng.uniform(0.05, 0.1), "momentum": rng.uniform(0.5, 0.8), "decay": rng.uniform(0.05, 0.2)}
    key = Key("threefry2x32", rng.integers(2**31, size=2).astype("uint32"))
    return state, x, y, config | changes, key


def arguments(given, first=0, last=2):
    state, x, y, config, key = given
    return state, Host(x), Host(y), config, key, first, last


# The same in float64 -------------------------------------------------------------------------------------------------


def forward(params, x, y):
    """Hidden units, and the loss and the slope of the scores for each row."""
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    scores = hidden @ params["w2"] + params["b2"]
    scores -= scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    slope = np.exp(logs)
    slope[np.arange(len(y)), y] -= 1
    return hidden, -logs[np.arange(len(y)), y], slope


def gradients(params, x, y, hidden, slope):
    inner = slope @ params["w2"].T * (1 - hidden**2)
    return {"w1": x.T @ inner, "b1": inner.sum(0), "w2": hidden.T @ slope, "b2": slope.sum(0)}


def rough(w1):
    pictures = w1.reshape(HEIGHT, WIDTH, -1)
    return np.mean(np.diff(pictures, axis=0) ** 2) + np.mean(np.diff(pictures, axis=1) ** 2)


def rough_slope(w1):
    pictures = w1.reshape(HEIGHT, WIDTH, -1)
    slope = np.zeros_like(pictures)
    down, right = np.diff(pictures, axis=0), np.diff(pictures, axis=1)
    slope[1:] += 2 * down / down.size
    slope[:-1] -= 2 * down / down.size
    slope[:, 1:] += 2 * right / right.size
    slope[:, :-1] -= 2 * right / right.size
    return slope.reshape(w1.shape)


def expected(given, first=0, last=2):
    """The state and the reported losses of a run without dropout."""
    state, x, y, config, _ = given
    params, velocity = (
        {name: np.float64(state[part][name]) for name in state[part]} for part in ("params", "velocity")
    )
    x, step, history = np.float64(x), int(state["step"]), []
    for epoch in range(first, last):
        order = np.random.default_rng([config["seed"], epoch]).permutation(len(x))
        total = 0.0
        for start in range(0, len(x), config["batch"]):
            rows = order[start : start + config["batch"]]
            hidden, losses, slope = forward(params, x[rows], y[rows])
            grads = gradients(params, x[rows], y[rows], hidden, slope / len(rows))
            for name in ("w1", "w2"):
                grads[name] = grads[name] + 2 * config["decay"] * params[name]
            grads["w1"] = grads["w1"] + config["rough"] * rough_slope(params["w1"])
            velocity = {name: config["momentum"] * velocity[name] + grads[name] for name in params}
            params = {name: params[name] - config["rate"] * velocity[name] for name in params}
            total, step = total + losses.sum(), step + 1
        history.append(total / len(x))
    return {"params": params, "velocity": velocity, "step": step}, history


def near(got, wanted):
    return same_tree(got, wanted, rtol=1e-3, atol=1e-4)


# fit ------------------------------------------------------------------------------------------------------------------


def two_runs(lab):
    """The first two runs of the process: all that `train_step` is traced for is traced here."""
    given = problem(lab)
    first = lab.observe("fit", *arguments(given))
    state, x, y, config, key = given
    other = config | {name: config[name] * 1.7 for name in ("decay", "rate")}
    second = lab.observe("fit", *arguments((state, x, y, other | {"momentum": 0.35}, key)))
    return given, first, (state, x, y, other | {"momentum": 0.35}, key), second


def smoothed(lab):
    given = problem(lab, rough=float(lab.rng.uniform(20, 40)))
    return given, lab.call("fit", *arguments(given))


@graded(
    points=3,
    task="fit",
    title="The reported losses did not move",
    hint="Without dropout, every reported loss should be the one that the repository gave as it came: the same rows in the same order, every "
    "row once an epoch, the mean over the real rows, momentum as it was. Dropped rows, padding that is counted and another optimizer move it.",
)
def test_reported_losses_did_not_move(lab):
    given, first, _, _ = lab.once(two_runs)
    assert near(list(first.value[1]), expected(given)[1])
    # Two losses can be near by chance for another order or another mean; four more, to four digits, cannot.
    more = lab.call("fit", *arguments(given, 2, 6))[1]
    assert same_tree(list(more), expected(given, 2, 6)[1], rtol=1e-4)


@graded(
    points=2,
    task="train_step",
    title="The trained parameters did not move",
    hint="Without dropout, parameters and velocity after two epochs should be those of the repository as it came. A padded row should have no "
    "part in the mean, nor in the gradient.",
)
def test_trained_parameters_did_not_move(lab):
    given, first, _, _ = lab.once(two_runs)
    wanted = expected(given)[0]
    assert all(near(first.value[0][part], wanted[part]) for part in ("params", "velocity"))


@graded(
    points=1,
    task="fit",
    title="The state keeps its form",
    hint="The state that comes out should have the keys and shapes of the one that went in, and its step should count the steps: old checkpoints "
    "hold exactly this. A new form of the state is a new repository.",
)
def test_state_keeps_its_form(lab):
    given, first, _, _ = lab.once(two_runs)
    state = first.value[0]
    assert state.keys() == given[0].keys()
    for part in ("params", "velocity"):
        assert {name: np.shape(leaf) for name, leaf in state[part].items()} == {
            name: leaf.shape for name, leaf in given[0][part].items()
        }
    assert int(state["step"]) == int(given[0]["step"]) + 2 * STEPS


@graded(
    points=1,
    task="fit",
    title="A run leaves the settings alone",
    hint="CONFIG and the config that fit is given should be after a run what they were before it: a run that writes its settings into a global "
    "decides about the next one.",
)
def test_run_leaves_the_settings_alone(lab):
    _, first, given, second = lab.once(two_runs)
    assert not {"CONFIG", "RECORD"} & {*first.changed_globals, *second.changed_globals}
    assert same_tree(second.arguments[3], given[3])


@graded(
    points=3,
    task="train_step",
    title="train_step is traced once",
    hint="Two runs with a short batch in each epoch and with other numbers in the config should trace the jitted train_step exactly once. The "
    "short batch is a shape of its own, a static config is a program for each value, and without jit nothing is traced at all.",
)
def test_train_step_is_traced_once(lab):
    _, first, _, second = lab.once(two_runs)
    assert first.other_traces.get("train_step", 0) + second.other_traces.get("train_step", 0) == 1


@graded(
    points=3,
    task="train_step",
    title="Every number in the config counts",
    hint="A second run in the same process with another decay, rate and momentum should use them. A value that is read from a global while "
    "tracing stays what it was: pass the config through train_step to where it is used.",
)
def test_every_number_in_the_config_counts(lab):
    _, _, given, second = lab.once(two_runs)
    wanted, history = expected(given)
    assert near(second.value[0]["params"], wanted["params"])
    assert near(list(second.value[1]), history)


@graded(
    points=3,
    task="fit",
    title="At most two reads an epoch",
    hint="Python should read values at most twice an epoch, also for the test of divergence. Keep the losses on the device and fetch the list once, "
    "with jax.device_get. A read of each step stalls each step.",
)
def test_at_most_two_reads_an_epoch(lab):
    _, first, _, second = lab.once(two_runs)
    assert first.reads + first.waits <= 4
    assert second.reads + second.waits <= 4


@graded(
    points=3,
    task="train_step",
    title="Each step drops units by a key of its own",
    hint="Every step should draw its mask with another key: fold the number of the step into the key that fit is given. One key for the run repeats its "
    "mask in every epoch, one key for an epoch in every batch, a key made inside in every run, and without a draw there is no dropout.",
)
def test_each_step_has_a_key_of_its_own(lab):
    # All rows are alike and nothing is learnt, so that a reported loss differs from another by its masks alone. Other masks can
    # give one loss by chance, but not one for each of three labels.
    state, x, y, config, key = problem(lab, keep=0.7, rate=0.0)
    x[:] = x[0]
    state["params"]["w2"] *= 5
    other = Key(key.impl, key.data[::-1] ^ np.uint32(1))
    losses = []
    for label in range(3):
        y[:] = label
        one_batch = lab.call("fit", *arguments((state, x[:BATCH], y[:BATCH], config, key), 0, 4))[1]
        two_batches = lab.call("fit", *arguments((state, x[: 2 * BATCH], y[: 2 * BATCH], config, key), 0, 1))[1]
        another = lab.call("fit", *arguments((state, x[:BATCH], y[:BATCH], config, other), 0, 1))[1]
        losses.append([*one_batch, *two_batches, *another])
    apart = np.abs(np.array(losses)[:, :, None] - np.array(losses)[:, None, :]).max(axis=0)
    assert apart[np.triu_indices(6, 1)].min() > 5e-6


@graded(
    points=2,
    task="fit",
    title="A resumed run is the run",
    hint="With dropout, two epochs should end where one epoch, and one more from its state, end. A counter or a key that is split starts again after "
    "a restart; the step in the state does not.",
)
def test_resumed_run_is_the_run(lab):
    given = problem(lab, keep=0.75)
    whole = lab.call("fit", *arguments(given))
    half, _ = lab.call("fit", *arguments(given, 0, 1))
    half["step"] = np.asarray(half["step"], "int32")
    rest = lab.call("fit", *arguments((half, *given[1:]), 1, 2))
    assert same_tree(rest[0]["params"], whole[0]["params"], rtol=1e-4, atol=1e-6)
    assert same_tree(rest[1][-1], whole[1][-1], rtol=1e-4)
    other = lab.call("fit", *arguments((*given[:3], given[3] | {"keep": 1.0}, given[4])))
    assert not same_tree(other[0]["params"], whole[0]["params"], rtol=1e-3, atol=1e-5)


@graded(
    points=2,
    task="fit",
    title="A run that diverges stops",
    hint="A loss that is not finite should raise a FloatingPointError, as it did: the check was dear because it ran on each step, not because it "
    "is wrong. Ask once an epoch, of what you read anyway: asked at the end, the night is lost.",
)
def test_diverging_run_stops(lab):
    given = problem(lab)
    given[1][int(lab.rng.integers(ROWS)), 3] = np.nan
    with pytest.raises(StudentError) as caught:
        lab.call("fit", *arguments(given, 0, EPOCHS_OF_A_NIGHT))
    assert caught.value.is_a("FloatingPointError")


# roughness ------------------------------------------------------------------------------------------------------------


@graded(
    points=2,
    task="roughness",
    title="The roughness of random pictures",
    hint="The mean over vertical neighbours plus the mean over horizontal ones, over all units: each mean divides by its own number of pairs. The "
    "end of one row of pixels and the start of the next should be no neighbours.",
)
def test_roughness_of_random_pictures(lab):
    params = parameters(lab.rng, 0.7)
    params["w1"] += np.float32(2 * (np.arange(HEIGHT * WIDTH) // WIDTH))[:, None]  # steeper down than across
    assert same_tree(lab.call("roughness", params), rough(np.float64(params["w1"])), rtol=1e-4)


@graded(
    points=3,
    task="roughness",
    title="Training uses the regulariser, at its strength",
    hint="With strength in the config, the trained parameters should be those of the loss plus decay plus strength times roughness: the term belongs "
    "into the objective that is differentiated, and its strength comes from the config.",
)
def test_training_uses_the_regulariser(lab):
    given, (state, _) = lab.once(smoothed)
    assert near(state["params"], expected(given)[0]["params"])


@graded(
    points=2,
    task="roughness",
    title="The report stays without penalties",
    hint="The reported loss should be the cross entropy alone, with or without a regulariser: a metric that has the penalty in it cannot be compared "
    "with what is on record.",
)
def test_report_stays_without_penalties(lab):
    given, (_, history) = lab.once(smoothed)
    assert near(list(history), expected(given)[1])


@graded(
    points=2,
    task="roughness",
    title="Flat pictures have no slope",
    hint="For flat pictures the gradient of roughness should be zero, so that training goes on with finite numbers. A square root, or a norm, has "
    "no slope at zero: NaN.",
)
def test_flat_pictures_have_no_slope(lab):
    given = problem(lab, rough=float(lab.rng.uniform(1, 2)))
    given[0]["params"]["w1"][:] = lab.rng.normal(0, 0.1, HIDDEN).astype("float32")
    state, _ = lab.call("fit", *arguments(given))
    assert near(state["params"], expected(given)[0]["params"])


# evaluate.py ----------------------------------------------------------------------------------------------------------


def evaluated(lab):
    state, x, y, *_ = problem(lab)
    return state["params"], x, y, lab.observe("evaluate", state["params"], x, y, repeat=4)


@graded(
    points=2,
    task="evaluate",
    title="evaluate gives the same numbers",
    hint="The mean cross entropy and the share of right rows, without dropout, as Python floats under the names that they had.",
)
def test_evaluate_gives_the_same_numbers(lab):
    params, x, y, seen = lab.once(evaluated)
    hidden, losses, _ = forward(params, np.float64(x), y)
    right = (hidden @ np.float64(params["w2"]) + params["b2"]).argmax(axis=1) == y
    assert set(seen.value) == {"loss", "accuracy"}
    assert all(isinstance(value, float) for value in seen.value.values())
    assert same_tree(dict(seen.value), {"loss": losses.mean(), "accuracy": right.mean()}, rtol=1e-4, atol=1e-6)
    other = {name: leaf * np.float32(0.5) for name, leaf in params.items()}
    for shift in range(4):  # dropout, or the first parameters, can give one loss by chance, but not four
        labels = (y + shift) % 10
        assert same_tree(lab.call("evaluate", other, x, labels)["loss"], forward(other, x, labels)[1].mean(), rtol=1e-4)


@graded(
    points=3,
    task="evaluate",
    title="evaluate is compiled",
    hint="For a set of a new size at most three programs should be compiled, in the first of four calls. Eager code makes one for each operation, and sends each off by itself: "
    "put what computes under jax.jit, once, outside of the function, and read its result.",
)
def test_evaluate_is_compiled(lab):
    _, _, _, seen = lab.once(evaluated)
    assert 1 <= seen.compiles + sum(seen.other_compiles.values()) <= 3


def analysed(lab):
    """A set whose size is no multiple of a chunk."""
    params, y = parameters(lab.rng, 0.3), lab.rng.integers(0, 10, ANALYSED).astype("int32")
    x = lab.rng.random((ANALYSED, HEIGHT * WIDTH)).astype("float32")
    return params, x, y, lab.export("gradient_norms", params, x, y)


@graded(
    points=2,
    task="gradient_norms",
    title="gradient_norms gives the same numbers",
    hint="One norm for each row, in the order of the rows, over all four leaves, also where the number of rows is no multiple of a chunk.",
)
def test_gradient_norms_give_the_same_numbers(lab):
    params, x, y, program = lab.once(analysed)
    wide = {name: np.float64(leaf) for name, leaf in params.items()}
    hidden, _, slope = forward(wide, np.float64(x), y)
    inner = slope @ wide["w2"].T * (1 - hidden**2)
    squares = (1 + (np.float64(x) ** 2).sum(1)) * (inner**2).sum(1) + (1 + (hidden**2).sum(1)) * (slope**2).sum(1)
    assert same_tree(np.asarray(program.value), np.sqrt(squares), rtol=1e-3)


@graded(
    points=3,
    task="gradient_norms",
    title="gradient_norms stays in its budget",
    hint="For about 256 rows the program should plan at most 250,000 bytes of temporaries. A vmap over all rows holds every row's gradient at once: take a "
    "few rows at a time inside the program, or find a form that needs no gradient of a whole layer.",
)
def test_gradient_norms_stay_in_budget(lab):
    *_, program = lab.once(analysed)
    assert program.shapes == ((ANALYSED,),)
    assert program.temporaries <= 250_000


@graded(
    points=1,
    task="gradient_norms",
    title="The program of gradient_norms does not grow with the rows",
    hint="A Python loop over chunks should be a jax.lax.map or a scan: unrolled, the program grows with the set, and so does its compile.",
)
def test_program_does_not_grow(lab):
    *_, program = lab.once(analysed)
    assert program.operations <= 400


# The repository's own tests -------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="tests",
    title="All tests pass on the repaired repository",
    hint="Every function whose name begins with test_ should pass on your own code, the two that came with the repository too.",
)
def test_own_tests_pass(lab):
    assert dict(lab.call("failing_tests")) == {}


@graded(
    points=3,
    task="tests",
    title="The tests notice a sabotaged fit",
    hint="A decay that stays what it was, lost rows, another order, an ignored strength, a report with the penalty in it: each should make an "
    "assertion fail. Compare with what is on record, for more than one setting, and see that a strength does something. "
    "A fit in other clothes that does the same should pass.",
    needs=("test_own_tests_pass",),
)
def test_tests_notice_a_sabotaged_fit(lab):
    assert not lab.call("noticed", "nothing")
    for kind in ("old decay", "drops rows", "other order", "no strength", "reports the penalty"):
        assert lab.call("noticed", kind), kind


@graded(
    points=3,
    task="tests",
    title="The tests notice a sabotaged roughness",
    hint="A wrong neighbour, one direction alone and a factor should each make an assertion fail. A value that was done by hand, for a picture that is "
    "steeper in one direction than in the other, tells all three; that training gets smoother tells none. A function of another name that gives the same values should pass.",
    needs=("test_own_tests_pass",),
)
def test_tests_notice_a_sabotaged_roughness(lab):
    assert not lab.call("noticed", "factor", 1.0)
    for kind in ("wrong neighbour", "one direction"):
        assert lab.call("noticed", kind), kind
    assert lab.call("noticed", "factor", float(1 + lab.rng.choice([-1, 1]) * lab.rng.uniform(0.02, 0.1)))
