# ---
# kind: wrong
# trap: decides with a Python if on a tracer
# fails: test_step_moves_by_the_velocity, test_empty_batch_changes_nothing
# hint: a Python `if` on the count raises
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    if count == 0:
        return state
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
