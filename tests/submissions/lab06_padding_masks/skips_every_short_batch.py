# ---
# kind: wrong
# trap: skips a batch unless every row is valid
# fails: test_step_moves_by_the_velocity
# hint: With valid rows the new velocity
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, x, y, valid, lr):
    grads = jax.grad(masked_loss)(state["params"], x, y, valid)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    new = {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
    return jax.tree.map(lambda n, o: jnp.where(valid.all(), n, o), new, state)
