# ---
# kind: wrong
# trap: reports the mean of the batch means
# fails: test_reported_losses_did_not_move
# hint: the mean over the real rows
# ---

# %% nbgrader={"grade_id": "objective"}
# digitnet/train.py
def objective(params, x, y, real, key, config):
    """What is minimised, and the summed loss of the real rows."""
    losses = row_losses(params, x, y, key, config["keep"]) * real
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    penalty = config["decay"] * squares + config["rough"] * roughness(params)
    return losses.sum() / real.sum() + penalty, losses.sum() / real.sum()

# %% nbgrader={"grade_id": "fit"}
# digitnet/train.py
def fit(state, x, y, config, key, first, last):
    """Train for the epochs first to last - 1: (state, reported losses)."""
    history = []
    for epoch in range(first, last):
        losses = []
        for rows, labels, real in batches(x, y, config["batch"], config["seed"], epoch):
            state, loss = train_step(state, rows, labels, real, key, config)
            losses.append(loss)
        history.append(float(np.mean(jax.device_get(losses))))  # the only wait of the epoch
        if not np.isfinite(history[-1]):
            raise FloatingPointError(f"the loss is {history[-1]} in epoch {epoch}")
    return state, history
