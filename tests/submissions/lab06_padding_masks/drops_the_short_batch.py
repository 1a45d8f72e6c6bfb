# ---
# kind: wrong
# trap: drops the short batch
# fails: test_rows_have_equal_weight_in_the_loss
# hint: leaves them out
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
    starts = range(0, len(x) - size + 1, size)
    loss, right, count = np.array([batch_totals(params, *padded(x, y, start, size)) for start in starts]).sum(axis=0)
    return {"loss": loss / count, "accuracy": right / count}
