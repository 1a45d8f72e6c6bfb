# ---
# kind: wrong
# trap: updates the weights and forgets the bias
# fails: test_bias_moves_too
# hint: visits every leaf
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return {**params, "w": params["w"] - lr * grads["w"]}, {"loss": loss}
