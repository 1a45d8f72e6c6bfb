# ---
# kind: wrong
# trap: metric kept in a global list
# fails: test_metric_is_returned, test_no_global_is_written
# hint: A value in a global list is a tracer
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    HISTORY.append(loss)
    new_params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {"params": new_params, "steps": state["steps"] + 1}, {}
