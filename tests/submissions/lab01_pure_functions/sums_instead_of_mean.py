# ---
# kind: wrong
# trap: adds over the rows and does not divide
# fails: test_loss_is_a_mean_over_the_rows
# hint: Divide by the rows there are
# ---

# %% nbgrader={"grade_id": "mse"}
def mse(params, x, y):
    predictions = jax.vmap(predict_one, in_axes=(None, 0))(params, x)
    return jnp.sum((predictions - y) ** 2)
