# ---
# kind: wrong
# trap: returns the new parameters and forgets the metrics
# fails: test_step_returns_a_pair
# hint: Parameters alone
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    grads = jax.grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads)
