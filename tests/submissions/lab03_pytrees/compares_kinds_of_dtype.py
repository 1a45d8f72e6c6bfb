# ---
# kind: wrong
# trap: takes int8 for int32: compares the kinds of dtypes, and the widths of floats alone
# fails: test_dtype_is_refused_by_path
# hint: int8 against int32
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    def contract(leaf):
        if jnp.issubdtype(leaf.dtype, jnp.integer):
            return jnp.shape(leaf), "int"
        return jnp.shape(leaf), str(leaf.dtype)

    wanted, got = (
        {jax.tree_util.keystr(path): contract(leaf) for path, leaf in jax.tree.leaves_with_path(tree)}
        for tree in (params, grads)
    )
    odd = [f"params{path}" for path in {**wanted, **got} if wanted.get(path) != got.get(path)]
    if odd:
        raise ValueError("these leaves do not fit: " + ", ".join(odd))
    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
