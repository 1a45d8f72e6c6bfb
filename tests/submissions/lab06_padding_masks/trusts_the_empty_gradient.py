# ---
# kind: wrong
# trap: keeps the velocity on an empty batch, and adds a gradient that it takes for zero
# fails: test_empty_batch_changes_nothing
# hint: whatever the gradient is
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    some = count > 0
    decay, rate = jnp.where(some, 0.9, 1.0), jnp.where(some, lr, 0.0)
    velocity = jax.tree.map(lambda v, g: decay * v + g, state["velocity"], grads)
    new_params = jax.tree.map(lambda p, v: p - rate * v, state["params"], velocity)
    return {"params": new_params, "velocity": velocity, "steps": state["steps"] + some.astype(jnp.int32)}
