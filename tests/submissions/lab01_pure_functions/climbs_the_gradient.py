# ---
# kind: wrong
# trap: adds the gradient
# fails: test_weights_move_down_the_gradient, test_bias_moves_too
# hint: look at the sign
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p + lr * g, params, grads), {"loss": loss}
