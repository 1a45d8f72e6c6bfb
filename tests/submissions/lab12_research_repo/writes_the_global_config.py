# ---
# kind: wrong
# trap: leaves CONFIG.update in the run
# fails: test_run_leaves_the_settings_alone
# hint: decides about the next one
# ---

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
