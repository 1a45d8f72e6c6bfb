# ---
# kind: wrong
# trap: divides by the four rows of the example
# fails: test_loss_is_a_mean_over_the_rows
# hint: not by four
# ---

# %% nbgrader={"grade_id": "mse"}
def mse(params, x, y):
    predictions = jax.vmap(predict_one, in_axes=(None, 0))(params, x)
    return jnp.sum((predictions - y) ** 2) / 4
