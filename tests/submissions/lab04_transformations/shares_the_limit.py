# ---
# kind: wrong
# trap: gives each row limit / n
# fails: test_rows_are_clipped_before_the_mean
# hint: to the limit as it is given
# ---

# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    each = jax.vmap(clip, in_axes=(0, None))(gradients(params, x, y), limit / len(x))
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), each)
