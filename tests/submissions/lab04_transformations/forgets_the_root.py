# ---
# kind: wrong
# trap: compares the squared norm with the limit
# fails: test_long_tree_is_clipped
# hint: not the square of the norm
# ---

# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree))
    return jax.tree.map(lambda leaf: leaf / jnp.maximum(1.0, squares / limit), tree)
