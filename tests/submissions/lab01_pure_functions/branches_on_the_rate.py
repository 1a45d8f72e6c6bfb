# ---
# kind: wrong
# trap: branches in Python on a traced value
# fails: test_step_compiles_with_one_trace
# hint: an `if` on the rate
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    if lr > 0:
        params = jax.tree.map(lambda p, g: p - lr * g, params, grads)
    return params, {"loss": loss}
