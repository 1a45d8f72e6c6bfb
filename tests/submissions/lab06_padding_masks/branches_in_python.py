# ---
# kind: wrong
# trap: decides with a Python if on a tracer
# fails: test_empty_batch_moves_no_parameters, test_step_moves_by_the_velocity
# hint: inside the program
# ---

# %% nbgrader={"grade_id": "step"}
def step(state, x, y, valid, lr):
    if not valid.any():
        return state
    grads = jax.grad(masked_loss)(state["params"], x, y, valid)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - lr * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "steps": state["steps"] + 1}
