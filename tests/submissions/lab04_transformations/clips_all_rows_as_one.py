# ---
# kind: wrong
# trap: clips the whole stack by one norm
# fails: test_rows_are_clipped_before_the_mean
# hint: clipped by itself
# ---

# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    stack = clip(gradients(params, x, y), limit * len(x) ** 0.5)
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), stack)
