# ---
# kind: wrong
# trap: unrepaired: one dropout key for the whole run
# fails: test_each_step_has_a_key_of_its_own
# hint: One key for the run repeats its mask
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
