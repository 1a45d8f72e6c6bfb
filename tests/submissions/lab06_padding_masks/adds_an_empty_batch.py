# ---
# kind: wrong
# trap: always adds one more batch, and takes its mean
# fails: test_full_batches_are_evaluated
# hint: An extra batch without a row
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
    loss = right = 0.0
    for start in range(0, len(x) // size * size + 1, size):
        total, hits, count = np.array(batch_totals(params, *padded(x, y, start, size)))
        loss, right = loss + total / count * count, right + hits
    return {"loss": loss / len(x), "accuracy": right / len(x)}
