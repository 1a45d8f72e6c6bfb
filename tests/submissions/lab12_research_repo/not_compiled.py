# ---
# kind: wrong
# trap: cures the retrace by taking jit away
# fails: test_train_step_is_traced_once
# hint: without jit nothing is traced at all
# ---

# %% nbgrader={"grade_id": "train_step"}
# digitnet/train.py
def train_step(state, x, y, real, key, config):
    """One step of SGD with momentum; the step's number makes its key."""
    key = jax.random.fold_in(key, state["step"])
    grads, loss = jax.grad(objective, has_aux=True)(state["params"], x, y, real, key, config)
    velocity = jax.tree.map(lambda v, g: config["momentum"] * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - config["rate"] * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "step": state["step"] + 1}, loss
