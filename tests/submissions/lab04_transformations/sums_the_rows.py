# ---
# kind: wrong
# trap: returns the sum of the gradients
# fails: test_each_row_has_its_gradient
# hint: not their sum or mean
# ---

# %% nbgrader={"grade_id": "gradients"}
def gradients(params, x, y):
    return jax.grad(lambda params: jnp.sum(jax.vmap(row_loss, in_axes=(None, 0, 0))(params, x, y)))(params)
