# ---
# kind: wrong
# trap: clips the mean gradient
# fails: test_rows_are_clipped_before_the_mean
# hint: the direction of its wildest row
# ---

# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    mean = jax.tree.map(lambda leaf: leaf.mean(axis=0), gradients(params, x, y))
    return clip(mean, limit)
