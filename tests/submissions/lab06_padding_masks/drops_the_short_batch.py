# ---
# kind: wrong
# trap: drops the short batch
# fails: test_rows_have_equal_weight_in_the_loss
# hint: dropping it leaves them out
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
    starts = range(0, len(x) - size + 1, size)
    loss, right, count = np.array([totals(params, *padded(x, y, start, size)) for start in starts]).sum(axis=0)
    return {"loss": loss / count, "accuracy": right / count}
