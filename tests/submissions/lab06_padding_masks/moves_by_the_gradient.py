# ---
# kind: wrong
# trap: moves by the gradient and forgets the velocity
# fails: test_step_moves_by_the_velocity
# hint: 0.9 * velocity + grads
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    new = {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
    return jax.tree.map(lambda n, o: jnp.where(count > 0, n, o), new, state)
