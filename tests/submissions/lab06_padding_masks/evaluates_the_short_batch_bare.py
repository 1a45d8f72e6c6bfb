# ---
# kind: wrong
# trap: gives the short batch to the compiled function as it is
# fails: test_other_numbers_of_rows_compile_nothing
# hint: A short last batch is a new shape
# ---

# %% nbgrader={"grade_id": "evaluate"}
@jax.jit
def batch_totals(params, x, y, valid):
    losses = row_losses(params, x, y)
    right = jnp.argmax(x @ params["w"] + params["b"], axis=1) == y
    return [jnp.sum(jnp.where(valid, part, 0)) for part in (losses, right, valid)]


def padded(x, y, start, size):
    rows, targets = x[start : start + size], y[start : start + size]
    missing = size - len(rows)
    return np.pad(rows, ((0, missing), (0, 0))), np.pad(targets, (0, missing)), np.arange(size) < size - missing


def evaluate(params, x, y, size):
    totals = np.zeros(3)
    for start in range(0, len(x), size):
        rows, targets = x[start : start + size], y[start : start + size]
        totals += np.array(batch_totals(params, rows, targets, np.ones(len(rows), bool)))
    return {"loss": totals[0] / totals[2], "accuracy": totals[1] / totals[2]}
