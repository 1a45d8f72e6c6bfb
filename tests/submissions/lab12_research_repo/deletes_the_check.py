# ---
# kind: wrong
# trap: saves the read by deleting the check for divergence
# fails: test_diverging_run_stops
# hint: the check was dear
# ---

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
        history.append(float(np.sum(jax.device_get(losses)) / len(x)))  # the only wait of the epoch
    return state, history
