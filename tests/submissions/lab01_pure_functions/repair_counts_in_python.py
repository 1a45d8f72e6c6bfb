# ---
# kind: wrong
# trap: turns the step count into a Python int inside the step
# fails: test_repaired_step_compiles_with_one_trace
# hint: int(state['steps'])
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new_params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {"params": new_params, "steps": int(state["steps"]) + 1}, {"loss": loss}
