# ---
# kind: wrong
# trap: looks for divergence when the run is over
# fails: test_diverging_run_stops
# hint: asked at the end
# ---

# %% nbgrader={"grade_id": "fit"}
# digitnet/train.py
def fit(state, x, y, config, key, first, last):
    history = []
    for epoch in range(first, last):
        losses = []
        for rows, labels, real in batches(x, y, config["batch"], config["seed"], epoch):
            state, loss = train_step(state, rows, labels, real, key, config)
            losses.append(loss)
        history.append(float(np.sum(jax.device_get(losses)) / len(x)))
    if not np.all(np.isfinite(history)):
        raise FloatingPointError("the run diverged")
    return state, history
