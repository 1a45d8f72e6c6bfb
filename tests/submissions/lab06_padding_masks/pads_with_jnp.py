# ---
# kind: wrong
# trap: pads with jnp.pad: a program for each width
# fails: test_other_numbers_of_rows_compile_nothing
# hint: so is each width of jnp.pad
# ---

# %% nbgrader={"grade_id": "evaluate"}
def padded(x, y, start, size):
    rows, targets = x[start : start + size], y[start : start + size]
    n = len(rows)
    return jnp.pad(rows, ((0, size - n), (0, 0))), jnp.pad(targets, (0, size - n)), n


def totals(params, rows, targets, n):
    losses, right = (np.asarray(part) for part in row_results(params, rows, targets))
    return np.array([losses[:n].sum(), right[:n].sum(), n], "float64")


def evaluate(params, x, y, size):
    parts = [totals(params, *padded(x, y, start, size)) for start in range(0, len(x), size)]
    loss, right, count = np.array(parts).sum(axis=0)
    return {"loss": loss / count, "accuracy": right / count}
