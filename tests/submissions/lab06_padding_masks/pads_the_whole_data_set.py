# ---
# kind: wrong
# trap: pads the whole data set to a multiple of the size, and evaluates it in one call
# fails: test_other_numbers_of_rows_compile_nothing
# hint: batches of `size` rows
# ---

# %% nbgrader={"grade_id": "evaluate"}
def evaluate(params, x, y, size):
    n = len(x)
    missing = -n % size
    rows, targets = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing))
    row_loss, row_right = row_results(params, rows, targets)
    return {"loss": float(np.asarray(row_loss)[:n].mean()), "accuracy": float(np.asarray(row_right)[:n].mean())}
