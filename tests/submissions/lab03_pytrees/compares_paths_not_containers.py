# ---
# kind: wrong
# trap: compares paths, shapes and dtypes, so a tuple passes for a list
# fails: test_containers_are_compared
# hint: a tuple stands for a list
# ---

# %% nbgrader={"grade_id": "validate_update"}
def contracts(tree):
    return {
        jax.tree_util.keystr(path): (jnp.shape(leaf), jnp.result_type(leaf))
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def validate_update(params, grads):
    wanted, got = contracts(params), contracts(grads)
    odd = ["params" + path for path in {**wanted, **got} if wanted.get(path) != got.get(path)]
    if odd:
        raise ValueError(" ".join(odd))
