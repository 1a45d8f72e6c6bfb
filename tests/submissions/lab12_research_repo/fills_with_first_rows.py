# ---
# kind: wrong
# trap: fills the short batch with the first rows of the order
# fails: test_trained_parameters_did_not_move, test_reported_losses_did_not_move
# hint: every
# ---

# %% nbgrader={"grade_id": "batches"}
# digitnet/data.py
def batches(x, y, size, seed, epoch):
    """The rows in the order of this epoch, in batches of `size`, the last one padded: (x, y, 1 for a real row)."""
    order = np.random.default_rng([seed, epoch]).permutation(len(x))
    for start in range(0, len(x), size):
        rows = np.resize(np.roll(order, -start), size)
        yield x[rows], y[rows], np.ones(size, "float32")
