# ---
# kind: wrong
# trap: pads with jnp.pad: a program for each width
# fails: test_other_numbers_of_rows_compile_nothing
# hint: so is each width of jnp.pad
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
    return jnp.pad(rows, ((0, missing), (0, 0))), jnp.pad(targets, (0, missing)), np.arange(size) < size - missing


def evaluate(params, x, y, size):
    parts = [batch_totals(params, *padded(x, y, start, size)) for start in range(0, len(x), size)]
    loss, right, count = np.array(parts).sum(axis=0)
    return {"loss": loss / count, "accuracy": right / count}
