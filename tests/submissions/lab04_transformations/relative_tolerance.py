# ---
# kind: wrong
# trap: a tolerance relative to the gradient
# fails: test_flaws_are_noticed_everywhere
# hint: from 0.02 on
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
from jax.flatten_util import ravel_pytree


def gradient_agrees(function, params):
    h = 0.01
    flat, unravel = ravel_pytree(params)
    grads, _ = ravel_pytree(jax.grad(function)(params))
    along = jnp.eye(len(flat)) * h
    differences = jnp.array([(function(unravel(flat + e)) - function(unravel(flat - e))) / (2 * h) for e in along])
    return bool(jnp.all(jnp.abs(grads - differences) < 0.02 * (1 + jnp.abs(differences))))
