# ---
# kind: wrong
# trap: relies on a gradient of zero
# fails: test_empty_batch_moves_no_parameters, test_empty_batch_leaves_the_whole_state
# hint: the velocity still moves them
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, x, y, valid, lr):
    grads = jax.grad(masked_loss)(state["params"], x, y, valid)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
