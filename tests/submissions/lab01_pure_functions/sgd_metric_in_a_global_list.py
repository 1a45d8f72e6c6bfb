# ---
# kind: wrong
# trap: keeps the metric in a global list and returns none
# fails: test_loss_is_from_before_the_update
# hint: metrics['loss']
# ---

# %% nbgrader={"grade_id": "sgd_step"}
LOSSES = []


def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    LOSSES.append(loss)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), {}
