# ---
# kind: wrong
# trap: writes out the two features of the example
# fails: test_prediction_for_any_number_of_features
# hint: rows of any length
# ---

# %% nbgrader={"grade_id": "predict_one"}
def predict_one(params, row):
    return params["w"][0] * row[0] + params["w"][1] * row[1] + params["b"]

# %% nbgrader={"grade_id": "mse"}
def mse(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)
