# ---
# kind: wrong
# trap: walks over the leaves of params, so an extra leaf has no name
# fails: test_renamed_entry_is_named_on_both_sides, test_none_against_a_leaf_is_refused
# hint: a loop over the leaves of one tree
# ---

# %% nbgrader={"grade_id": "validate_update"}
def contracts(tree):
    return {
        jax.tree_util.keystr(path): (jnp.shape(leaf), jnp.result_type(leaf))
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def validate_update(params, grads):
    got = contracts(grads)
    odd = ["params" + path for path, wanted in contracts(params).items() if got.get(path) != wanted]
    if odd:
        raise ValueError(" ".join(odd))

    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
