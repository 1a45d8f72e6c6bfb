# ---
# kind: wrong
# trap: unrepaired: the decay is read from a global while tracing
# fails: test_every_number_in_the_config_counts
# hint: stays what it was
# ---

# %% nbgrader={"grade_id": "objective"}
# digitnet/train.py
def objective(params, x, y, real, key, config):
    """What is minimised, and the summed loss of the real rows."""
    losses = row_losses(params, x, y, key, config["keep"]) * real
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    penalty = CONFIG["decay"] * squares + config["rough"] * roughness(params)
    return losses.sum() / real.sum() + penalty, losses.sum()

# %% nbgrader={"grade_id": "fit"}
# digitnet/train.py
def fit(state, x, y, config, key, first, last):
    """Train for the epochs first to last - 1: (state, reported losses)."""
    CONFIG.update(config)
    history = []
    for epoch in range(first, last):
        losses = []
        for rows, labels, real in batches(x, y, config["batch"], config["seed"], epoch):
            state, loss = train_step(state, rows, labels, real, key, config)
            losses.append(loss)
        history.append(float(np.sum(jax.device_get(losses)) / len(x)))  # the only wait of the epoch
        if not np.isfinite(history[-1]):
            raise FloatingPointError(f"the loss is {history[-1]} in epoch {epoch}")
    return state, history
