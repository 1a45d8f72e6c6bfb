# ---
# kind: wrong
# trap: keeps all but the count of steps
# fails: test_empty_batch_changes_nothing
# hint: steps should stay as they were
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    keep = lambda new, old: jnp.where(count > 0, new, old)
    return {
        "params": jax.tree.map(keep, params, state["params"]),
        "velocity": jax.tree.map(keep, velocity, state["velocity"]),
        "steps": state["steps"] + 1,
    }
