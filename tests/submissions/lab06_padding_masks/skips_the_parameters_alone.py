# ---
# kind: wrong
# trap: keeps the parameters and lets the velocity decay
# fails: test_empty_batch_changes_nothing
# hint: Choose the whole old state
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v * (count > 0), state["params"], velocity)
    return {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
