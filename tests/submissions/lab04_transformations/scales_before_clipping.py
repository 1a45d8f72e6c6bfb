# ---
# kind: wrong
# trap: divides the gradients by n, then clips, then adds up
# fails: test_rows_are_clipped_before_the_mean
# hint: too short to be clipped
# ---

# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    each = jax.tree.map(lambda leaf: leaf / len(x), gradients(params, x, y))
    clipped = jax.vmap(clip, in_axes=(0, None))(each, limit)
    return jax.tree.map(lambda leaf: leaf.sum(axis=0), clipped)
