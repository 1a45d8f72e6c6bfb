# ---
# kind: wrong
# trap: h = 1e-6 in float32
# fails: test_honest_function_passes
# hint: drowns in rounding
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
from jax.flatten_util import ravel_pytree


def gradient_agrees(function, params):
    flat, restore = ravel_pytree(params)
    grad, _ = ravel_pytree(jax.grad(function)(params))
    h = 1e-6
    for i in range(flat.size):
        up, down = (float(function(restore(flat.at[i].add(by)))) for by in (h, -h))
        if not abs(float(grad[i]) - (up - down) / (2 * h)) < 0.02:
            return False
    return True
