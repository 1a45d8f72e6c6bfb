# ---
# kind: wrong
# trap: maps over axis 1 of x
# fails: test_each_row_has_its_gradient
# hint: a wrong axis raises nothing
# ---

# %% nbgrader={"grade_id": "gradients"}
def gradients(params, x, y):
    return jax.vmap(jax.grad(row_loss), in_axes=(None, 1, 0))(params, x, y)
