# ---
# kind: wrong
# trap: relies on a gradient of zero
# fails: test_empty_batch_changes_nothing
# hint: velocity still moves the parameters
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
