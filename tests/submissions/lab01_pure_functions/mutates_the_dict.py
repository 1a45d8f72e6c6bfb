# ---
# kind: wrong
# trap: mutates the dict it was given
# fails: test_step_leaves_its_arguments_alone
# hint: Build a new one
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    for name in params:
        params[name] = params[name] - lr * grads[name]
    return params, {"loss": loss}
