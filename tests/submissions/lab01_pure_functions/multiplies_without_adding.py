# ---
# kind: wrong
# trap: multiplies and does not add up over the features
# fails: test_one_row_gives_one_number
# hint: add them up
# ---

# %% nbgrader={"grade_id": "predict_one"}
def predict_one(params, row):
    return params["w"] * row + params["b"]
