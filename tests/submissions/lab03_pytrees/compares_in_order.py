# ---
# kind: wrong
# trap: compares shapes and dtypes of the leaves in order, and no structure
# fails: test_renamed_entry_is_named_on_both_sides, test_none_against_a_leaf_is_refused, test_containers_are_compared
# hint: A renamed entry is two faults
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    pairs = zip(jax.tree.leaves_with_path(params), jax.tree.leaves(grads), strict=True)
    odd = [
        "params" + jax.tree_util.keystr(path)
        for (path, p), g in pairs
        if (jnp.shape(p), jnp.result_type(p)) != (jnp.shape(g), jnp.result_type(g))
    ]
    if odd:
        raise ValueError(" ".join(odd))
