# ---
# kind: wrong
# trap: a Python if on the norm, which no vmap can trace
# fails: test_short_tree_stays, test_rows_are_clipped_before_the_mean
# hint: a Python `if` on the norm
# ---

# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    if norm > limit:
        return jax.tree.map(lambda leaf: leaf * limit / norm, tree)
    return tree
