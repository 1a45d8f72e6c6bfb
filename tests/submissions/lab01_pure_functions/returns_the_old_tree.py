# ---
# kind: wrong
# trap: returns the old tree
# fails: test_weights_move_down_the_gradient
# hint: If it is the old w
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    new_params = jax.tree.map(lambda p, g: p - lr * g, params, grads)
    return params, {"loss": loss}
