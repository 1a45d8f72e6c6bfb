# ---
# kind: wrong
# trap: shuffles with a JAX key instead
# fails: test_reported_losses_did_not_move, test_trained_parameters_did_not_move
# hint: the same rows in the same order
# ---

# %% nbgrader={"grade_id": "batches"}
# digitnet/data.py
def batches(x, y, size, seed, epoch):
    """The rows in the order of this epoch, in batches of `size`, the last one padded: (x, y, 1 for a real row)."""
    order = np.asarray(jax.random.permutation(jax.random.key(seed + epoch), len(x)))
    for start in range(0, len(x), size):
        rows = order[start : start + size]
        missing = size - len(rows)
        real = np.float32(np.arange(size) < len(rows))
        yield np.pad(x[rows], ((0, missing), (0, 0))), np.pad(y[rows], (0, missing)), real
