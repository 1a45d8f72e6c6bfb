# ---
# kind: wrong
# trap: leaves out whatever has a b in its path
# fails: test_nested_layers_count
# hint: under any name
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    pairs = jax.tree.leaves_with_path(params)
    return strength * sum(jnp.sum(leaf**2) for path, leaf in pairs if "b" not in jax.tree_util.keystr(path))
