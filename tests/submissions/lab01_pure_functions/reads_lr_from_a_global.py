# ---
# kind: wrong
# trap: reads lr from a global
# fails: test_rate_is_the_argument
# hint: A rate from a global
# ---

# %% nbgrader={"grade_id": "sgd_step"}
LEARNING_RATE = 0.05


def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads), {"loss": loss}
