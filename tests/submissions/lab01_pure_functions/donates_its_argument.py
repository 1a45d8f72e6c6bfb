# ---
# kind: wrong
# trap: donates the parameters that the caller still needs
# fails: test_step_leaves_its_arguments_alone
# hint: donating it
# ---

# %% nbgrader={"grade_id": "sgd_step"}
from functools import partial


@partial(jax.jit, donate_argnums=0)
def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": loss}
