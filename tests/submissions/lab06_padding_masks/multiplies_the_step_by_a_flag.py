# ---
# kind: wrong
# trap: multiplies old and new state by a flag: 0 * NaN
# fails: test_empty_batch_changes_nothing
# hint: whatever the gradient is
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    go = (count > 0).astype(jnp.float32)
    mix = lambda new, old: go * new + (1 - go) * old
    velocity = jax.tree.map(lambda v, g: mix(0.9 * v + g, v), state["velocity"], grads)
    new_params = jax.tree.map(lambda p, v: mix(p - lr * v, p), state["params"], velocity)
    return {"params": new_params, "velocity": velocity, "steps": state["steps"] + (count > 0).astype(jnp.int32)}
