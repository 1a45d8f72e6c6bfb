# ---
# kind: wrong
# trap: reports the loss after the update as the loss before
# fails: test_loss_is_from_before_the_update
# hint: the parameters that came in
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    grads = jax.grad(mse)(params, x, y)
    new_params = jax.tree.map(lambda p, g: p - lr * g, params, grads)
    return new_params, {"loss": mse(new_params, x, y)}
