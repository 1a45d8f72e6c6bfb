# ---
# kind: wrong
# trap: scales every tree to the limit
# fails: test_short_tree_stays
# hint: should never be
# ---

# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf * limit / jnp.maximum(norm, 1e-12), tree)
