# ---
# kind: wrong
# trap: makes a float of the count of steps
# fails: test_step_moves_by_the_velocity
# hint: with its dtype
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    go = jnp.where(count > 0, 1.0, 0.0)
    velocity = jax.tree.map(lambda v, g: jnp.where(go > 0, 0.9 * v + g, v), state["velocity"], grads)
    new_params = jax.tree.map(lambda p, v: jnp.where(go > 0, p - lr * v, p), state["params"], velocity)
    return {"params": new_params, "velocity": velocity, "steps": state["steps"] + go}
