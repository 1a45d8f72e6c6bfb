# ---
# kind: wrong
# trap: gives the short batch to the compiled function as it is
# fails: test_other_numbers_of_rows_compile_nothing
# hint: A short last batch is a new shape
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
    summed = np.zeros(3)
    for start in range(0, len(x), size):
        rows, targets = x[start : start + size], y[start : start + size]
        summed += totals(params, rows, targets, len(rows))
    return {"loss": summed[0] / summed[2], "accuracy": summed[1] / summed[2]}
