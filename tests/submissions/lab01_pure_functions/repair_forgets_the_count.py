# ---
# kind: wrong
# trap: returns the old step count
# fails: test_step_counts_itself
# hint: one higher
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new_params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": new_params}, {"loss": loss}
