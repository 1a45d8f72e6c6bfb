# ---
# kind: wrong
# trap: a sum for the mean
# fails: test_free_limit_gives_the_mean
# hint: Neither the sum
# ---

# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    each = jax.vmap(clip, in_axes=(0, None))(gradients(params, x, y), limit)
    return jax.tree.map(lambda leaf: leaf.sum(axis=0), each)
