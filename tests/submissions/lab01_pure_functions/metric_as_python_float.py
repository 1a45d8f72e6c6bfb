# ---
# kind: wrong
# trap: turns the metric into a Python float inside the step
# fails: test_step_compiles_with_one_trace
# hint: float(loss)
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": float(loss)}
