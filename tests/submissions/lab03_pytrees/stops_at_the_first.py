# ---
# kind: wrong
# trap: raises at the first leaf that does not fit
# fails: test_all_offenders_and_no_other
# hint: collect them, and raise once
# ---

# %% nbgrader={"grade_id": "validate_update"}
def contracts(tree):
    return {
        jax.tree_util.keystr(path): (jnp.shape(leaf), jnp.result_type(leaf))
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def validate_update(params, grads):
    wanted, got = contracts(params), contracts(grads)
    if only := wanted.keys() ^ got.keys():
        raise ValueError(" ".join("params" + path for path in only))
    for path in wanted:
        if wanted[path] != got[path]:
            raise ValueError("params" + path)

    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
