# ---
# kind: wrong
# trap: maps predict_one over the columns
# fails: test_features_are_summed_for_each_row
# hint: look at the axis of your sum
# ---

# %% nbgrader={"grade_id": "mse"}
def mse(params, x, y):
    predictions = jax.vmap(predict_one, in_axes=(None, 1))(params, x)
    return jnp.mean((predictions - y) ** 2)
