# ---
# kind: wrong
# trap: adds up all leaves
# fails: test_bias_is_left_out, test_nested_layers_count
# hint: Another bias should give the same penalty
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    return strength * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
