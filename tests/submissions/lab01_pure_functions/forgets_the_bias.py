# ---
# kind: wrong
# trap: leaves the bias out
# fails: test_prediction_has_the_bias
# hint: Is the bias in it
# ---

# %% nbgrader={"grade_id": "predict_one"}
def predict_one(params, row):
    return params["w"] @ row
