# ---
# kind: wrong
# trap: splits a key that the checkpoint does not hold
# fails: test_resumed_run_is_the_run
# hint: a key that is split
# ---

# %% nbgrader={"grade_id": "train_step"}
# digitnet/train.py
@jax.jit
def train_step(state, x, y, real, key, config):
    """One step of SGD with momentum; the step's number makes its key."""
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
            key, mask_key = jax.random.split(key)
            state, loss = train_step(state, rows, labels, real, mask_key, config)
            losses.append(loss)
        history.append(float(np.sum(jax.device_get(losses)) / len(x)))  # the only wait of the epoch
        if not np.isfinite(history[-1]):
            raise FloatingPointError(f"the loss is {history[-1]} in epoch {epoch}")
    return state, history
