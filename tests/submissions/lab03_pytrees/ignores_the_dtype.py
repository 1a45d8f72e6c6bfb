# ---
# kind: wrong
# trap: compares shapes and structure, and no dtype
# fails: test_dtype_is_refused_by_path
# hint: another dtype should be refused
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    wanted, got = (
        {jax.tree_util.keystr(path): jnp.shape(leaf) for path, leaf in jax.tree.leaves_with_path(tree)}
        for tree in (params, grads)
    )
    odd = ["params" + path for path in {**wanted, **got} if wanted.get(path) != got.get(path)]
    if odd:
        raise ValueError(" ".join(odd))

    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
