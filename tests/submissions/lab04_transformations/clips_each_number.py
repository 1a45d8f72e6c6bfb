# ---
# kind: wrong
# trap: clips entries, not the norm
# fails: test_long_tree_is_clipped
# hint: each number by itself
# ---

# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    return jax.tree.map(lambda leaf: jnp.clip(leaf, -limit, limit), tree)
