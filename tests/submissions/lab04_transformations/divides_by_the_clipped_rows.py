# ---
# kind: wrong
# trap: divides by the number of clipped rows
# fails: test_free_limit_gives_the_mean
# hint: by the rows that were clipped
# ---

# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    each = gradients(params, x, y)
    norms = jnp.sqrt(each["b"] ** 2 + jnp.sum(each["w"] ** 2, axis=1))
    count = jnp.maximum(jnp.sum(norms > limit), 1)
    clipped = jax.vmap(clip, in_axes=(0, None))(each, limit)
    return jax.tree.map(lambda leaf: leaf.sum(axis=0) / count, clipped)
