# ---
# kind: wrong
# trap: keeps all but the count of steps
# fails: test_empty_batch_leaves_the_whole_state
# hint: no step be counted
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, x, y, valid, lr):
    grads = jax.grad(masked_loss)(state["params"], x, y, valid)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    keep = lambda new, old: jnp.where(valid.any(), new, old)
    return {
        "params": jax.tree.map(keep, params, state["params"]),
        "velocity": jax.tree.map(keep, velocity, state["velocity"]),
        "steps": state["steps"] + 1,
    }
