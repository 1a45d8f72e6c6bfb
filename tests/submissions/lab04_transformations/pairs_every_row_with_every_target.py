# ---
# kind: wrong
# trap: targets are not mapped, and the mean hides it
# fails: test_each_row_has_its_gradient
# hint: gradient of each row's own loss
# ---

# %% nbgrader={"grade_id": "gradients"}
def gradients(params, x, y):
    def loss(params, row):
        return jnp.mean(row_loss(params, row, y))

    return jax.vmap(jax.grad(loss), in_axes=(None, 0))(params, x)
