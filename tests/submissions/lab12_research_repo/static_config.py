# ---
# kind: wrong
# trap: makes the config static
# fails: test_train_step_is_traced_once
# hint: a static config is a program for each value
# ---

# %% nbgrader={"grade_id": "train_step"}
# digitnet/train.py
from functools import partial


@partial(jax.jit, static_argnames="settings")
def train_step(state, x, y, real, key, settings):
    config = dict(settings)
    key = jax.random.fold_in(key, state["step"])
    grads, loss = jax.grad(objective, has_aux=True)(state["params"], x, y, real, key, config)
    velocity = jax.tree.map(lambda v, g: config["momentum"] * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - config["rate"] * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "step": state["step"] + 1}, loss

# %% nbgrader={"grade_id": "fit"}
# digitnet/train.py
def fit(state, x, y, config, key, first, last):
    """Train for the epochs first to last - 1: (state, reported losses)."""
    history = []
    for epoch in range(first, last):
        losses = []
        for rows, labels, real in batches(x, y, config["batch"], config["seed"], epoch):
            state, loss = train_step(state, rows, labels, real, key, tuple(config.items()))
            losses.append(loss)
        history.append(float(np.sum(jax.device_get(losses)) / len(x)))  # the only wait of the epoch
        if not np.isfinite(history[-1]):
            raise FloatingPointError(f"the loss is {history[-1]} in epoch {epoch}")
    return state, history
