# ---
# kind: wrong
# trap: always adds one more batch, and takes its mean
# fails: test_rows_have_equal_weight_in_the_loss
# hint: an extra batch without a row
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
    loss = right = 0.0
    for start in range(0, len(x) // size * size + 1, size):
        total, hits, count = totals(params, *padded(x, y, start, size))
        loss, right = loss + total / count * count, right + hits
    return {"loss": loss / len(x), "accuracy": right / len(x)}
