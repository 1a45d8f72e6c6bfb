# ---
# kind: wrong
# trap: unrepaired: the short batch has a shape of its own
# fails: test_train_step_is_traced_once
# hint: The short batch is a shape of its own
# ---

# %% nbgrader={"grade_id": "batches"}
# digitnet/data.py
def batches(x, y, size, seed, epoch):
    """The rows in the order of this epoch, in batches of `size`, the last one padded: (x, y, 1 for a real row)."""
    order = np.random.default_rng([seed, epoch]).permutation(len(x))
    for start in range(0, len(x), size):
        rows = order[start : start + size]
        yield x[rows], y[rows], np.ones(len(rows), "float32")
