# ---
# kind: wrong
# trap: leaves out what has no axis
# fails: test_nested_layers_count
# hint: under any name
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    return strength * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params) if leaf.ndim > 0)
