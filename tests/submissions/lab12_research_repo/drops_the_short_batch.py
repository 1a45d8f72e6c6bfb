# ---
# kind: wrong
# trap: drops the rows that fill no batch
# fails: test_reported_losses_did_not_move, test_state_keeps_its_form
# hint: Dropped rows
# ---

# %% nbgrader={"grade_id": "batches"}
# digitnet/data.py
def batches(x, y, size, seed, epoch):
    """The rows in the order of this epoch, in batches of `size`, the last one padded: (x, y, 1 for a real row)."""
    order = np.random.default_rng([seed, epoch]).permutation(len(x))
    for start in range(0, len(x) - size + 1, size):
        rows = order[start : start + size]
        yield x[rows], y[rows], np.ones(size, "float32")
