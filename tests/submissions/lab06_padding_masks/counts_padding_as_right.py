# ---
# kind: wrong
# trap: masks the loss and not the accuracy
# fails: test_accuracy_counts_real_rows
# hint: can be 'right' by accident
# ---

# %% nbgrader={"grade_id": "evaluate"}
def padded(x, y, start, size):
    rows, targets = x[start : start + size], y[start : start + size]
    n = len(rows)
    return np.pad(rows, ((0, size - n), (0, 0))), np.pad(targets, (0, size - n)), n


def totals(params, rows, targets, n):
    losses, right = (np.asarray(part) for part in row_results(params, rows, targets))
    return np.array([losses[:n].sum(), right.sum(), n], "float64")


def evaluate(params, x, y, size):
    parts = [totals(params, *padded(x, y, start, size)) for start in range(0, len(x), size)]
    loss, right, count = np.array(parts).sum(axis=0)
    return {"loss": loss / count, "accuracy": right / count}
