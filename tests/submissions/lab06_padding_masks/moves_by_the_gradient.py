# ---
# kind: wrong
# trap: moves by the gradient and forgets the velocity
# fails: test_step_moves_by_the_velocity
# hint: 0.9 * velocity + gradient
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, x, y, valid, lr):
    grads = jax.grad(masked_loss)(state["params"], x, y, valid)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    new = {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
    return jax.tree.map(lambda n, o: jnp.where(valid.any(), n, o), new, state)
