# ---
# kind: wrong
# trap: keeps the parameters and lets the velocity decay
# fails: test_empty_batch_leaves_the_whole_state
# hint: Skipping is about the whole state
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, x, y, valid, lr):
    grads = jax.grad(masked_loss)(state["params"], x, y, valid)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v * valid.any(), state["params"], velocity)
    return {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
