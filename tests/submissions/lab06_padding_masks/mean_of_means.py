# ---
# kind: wrong
# trap: averages the means of the batches
# fails: test_rows_have_equal_weight_in_the_loss
# hint: A mean of batch means
# ---

# %% nbgrader={"grade_id": "evaluate"}
def padded(x, y, start, size):
    rows, targets = x[start : start + size], y[start : start + size]
    n = len(rows)
    return np.pad(rows, ((0, size - n), (0, 0))), np.pad(targets, (0, size - n)), n


def totals(params, rows, targets, n):
    losses, right = (np.asarray(part) for part in row_results(params, rows, targets))
    return np.array([losses[:n].sum(), right[:n].sum(), n], "float64")


def evaluate(params, x, y, size):
    parts = np.array([totals(params, *padded(x, y, start, size)) for start in range(0, len(x), size)])
    loss, accuracy = (parts[:, :2] / parts[:, 2:]).mean(axis=0)
    return {"loss": loss, "accuracy": accuracy}
