# ---
# kind: wrong
# trap: rewrites the optimizer with Adam and a state of its own
# fails: test_state_keeps_its_form, test_reported_losses_did_not_move
# hint: a new repository
# ---

# %% nbgrader={"grade_id": "train_step"}
# digitnet/train.py
import optax


@jax.jit
def train_step(state, x, y, real, key, config):
    key = jax.random.fold_in(key, state["step"])
    optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=config["rate"])
    grads, loss = jax.grad(objective, has_aux=True)(state["params"], x, y, real, key, config)
    updates, opt_state = optimizer.update(grads, state["opt_state"], state["params"])
    return {"params": optax.apply_updates(state["params"], updates), "opt_state": opt_state, "step": state["step"] + 1}, loss

# %% nbgrader={"grade_id": "fit"}
# digitnet/train.py
def fit(state, x, y, config, key, first, last):
    """Train for the epochs first to last - 1: (state, reported losses)."""
    if "opt_state" not in state:
        optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=jnp.float32(config["rate"]))
        state = {"params": state["params"], "opt_state": optimizer.init(state["params"]), "step": state["step"]}
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
