# ---
# kind: wrong
# trap: selects the valid rows with a Boolean index
# fails: test_loss_runs_inside_jit
# hint: x[valid] has no fixed shape
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    return row_losses(params, x[valid], y[valid]).mean()
