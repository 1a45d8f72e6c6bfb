# ---
# kind: wrong
# trap: makes the learning rate static
# fails: test_step_compiles_with_one_trace
# hint: a static rate
# ---

# %% nbgrader={"grade_id": "sgd_step"}
from functools import partial


@partial(jax.jit, static_argnames="lr")
def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": loss}
