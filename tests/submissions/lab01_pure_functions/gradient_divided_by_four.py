# ---
# kind: wrong
# trap: writes the gradient by hand and divides it by the four rows of the example
# fails: test_weights_move_down_the_gradient, test_bias_moves_too
# hint: for any number of rows
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    errors = x @ params["w"] + params["b"] - y
    grads = {"w": 2 * errors @ x / 4, "b": 2 * errors.sum() / 4}
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": jnp.mean(errors**2)}
