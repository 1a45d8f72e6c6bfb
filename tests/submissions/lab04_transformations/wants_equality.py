# ---
# kind: wrong
# trap: asks for equal numbers
# fails: test_honest_function_passes
# hint: Exact equality
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
from jax.flatten_util import ravel_pytree


def gradient_agrees(function, params):
    flat, restore = ravel_pytree(params)
    grad, _ = ravel_pytree(jax.grad(function)(params))
    h = 0.01
    for i in range(flat.size):
        up, down = (float(function(restore(flat.at[i].add(by)))) for by in (h, -h))
        if not abs(float(grad[i]) - (up - down) / (2 * h)) < 1e-7:
            return False
    return True
