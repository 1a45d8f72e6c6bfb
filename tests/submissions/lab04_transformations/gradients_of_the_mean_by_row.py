# ---
# kind: wrong
# trap: divides each row's gradient by the number of rows
# fails: test_each_row_has_its_gradient
# hint: divided by the number of rows
# ---

# %% nbgrader={"grade_id": "gradients"}
def gradients(params, x, y):
    def losses(params):
        return jax.vmap(row_loss, in_axes=(None, 0, 0))(params, x, y) / len(x)

    return jax.jacrev(losses)(params)
