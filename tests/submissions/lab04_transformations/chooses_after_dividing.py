# ---
# kind: wrong
# trap: 0 / 0 in the branch that a select multiplies
# fails: test_zeros_stay_zeros
# hint: 0 / 0
# ---

# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    over = (norm > limit).astype(jnp.float32)
    return jax.tree.map(lambda leaf: over * (leaf / norm * limit) + (1 - over) * leaf, tree)
