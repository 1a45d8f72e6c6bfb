# ---
# kind: wrong
# trap: reduces over the wrong axis
# fails: test_features_are_summed_for_each_row
# hint: look at the axis of your sum
# ---

# %% nbgrader={"grade_id": "mse"}
def mse(params, x, y):
    predictions = (x * params["w"]).sum(axis=0) + params["b"]
    return jnp.mean((predictions - y) ** 2)
