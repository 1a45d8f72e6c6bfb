# ---
# kind: wrong
# trap: NaN is not greater than 0.02
# fails: test_nan_agrees_with_nothing
# hint: Every comparison with NaN is False
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
from jax.flatten_util import ravel_pytree


def gradient_agrees(function, params):
    flat, restore = ravel_pytree(params)
    grad, _ = ravel_pytree(jax.grad(function)(params))
    h = 0.01
    for i in range(flat.size):
        up, down = (float(function(restore(flat.at[i].add(by)))) for by in (h, -h))
        if abs(float(grad[i]) - (up - down) / (2 * h)) > 0.02:
            return False
    return True
