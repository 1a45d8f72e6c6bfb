# ---
# kind: wrong
# trap: skips a batch unless every row is valid
# fails: test_step_moves_by_the_velocity
# hint: With any valid row the new velocity
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    new = {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
    return jax.tree.map(lambda n, o: jnp.where(count == 8, n, o), new, state)
