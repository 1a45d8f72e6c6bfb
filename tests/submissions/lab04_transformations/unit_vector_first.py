# ---
# kind: wrong
# trap: divides by the norm: NaN at zero
# fails: test_zeros_stay_zeros
# hint: 0 / 0
# ---

# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf / norm * jnp.minimum(norm, limit), tree)
