# ---
# kind: alternative
# about: a single test, steps numbered from epoch and batch, a compiled difference of means
# ---

# %% nbgrader={"grade_id": "train_step"}
# digitnet/train.py
from functools import partial


@partial(jax.jit, donate_argnames=())
def train_step(state, rows, labels, real, key, config):
    (_, loss), grads = jax.value_and_grad(objective, has_aux=True)(state["params"], rows, labels, real, key, config)
    velocity = jax.tree.map(lambda v, g: v * config["momentum"] + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - v * config["rate"], state["params"], velocity)
    return state | {"params": params, "velocity": velocity, "step": state["step"] + 1}, loss

# %% nbgrader={"grade_id": "fit"}
# digitnet/train.py
def fit(state, x, y, config, key, first, last):
    history = []
    for epoch in range(first, last):
        epoch_key, losses = jax.random.fold_in(key, epoch), []
        for number, batch in enumerate(batches(x, y, config["batch"], config["seed"], epoch)):
            state, loss = train_step(state, *batch, jax.random.fold_in(epoch_key, number), config)
            losses.append(loss)
        loss = float(sum(losses)) / len(x)
        if not np.isfinite(loss):
            raise FloatingPointError(loss)
        history.append(loss)
    return state, history

# %% nbgrader={"grade_id": "tests"}
# tests/test_digitnet.py
def test_everything():
    (a, b), (c, d) = (RECORD[decay] for decay in (0.01, 0.3))
    got = [loss for decay in (0.01, 0.3) for loss in run_small(keep=1.0, decay=decay)[1]]
    assert np.allclose(got, [a, b, c, d], atol=5e-4)
    values = [float(roughness({"w1": steep * slope()})) for steep in (0.0, 1.0, 2.0)]
    assert np.allclose(values, [0, 13, 52], rtol=1e-3)
    assert run_small(keep=1.0, rough=3.0)[1][1] != run_small(keep=1.0)[1][1]


def test_types():
    assert isinstance(run_small()[1][0], float)
