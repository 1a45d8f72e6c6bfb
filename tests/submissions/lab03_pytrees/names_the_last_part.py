# ---
# kind: wrong
# trap: names leaves in another notation
# fails: test_broadcast_is_refused_by_path, test_dtype_is_refused_by_path
# hint: the path in full
# ---

# %% nbgrader={"grade_id": "validate_update"}
def contracts(tree):
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): (jnp.shape(leaf), jnp.result_type(leaf))
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def validate_update(params, grads):
    wanted, got = contracts(params), contracts(grads)
    odd = [path for path in {**wanted, **got} if wanted.get(path) != got.get(path)]
    if odd:
        raise ValueError(" ".join(odd))

    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
