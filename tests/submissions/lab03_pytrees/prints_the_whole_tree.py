# ---
# kind: wrong
# trap: names every path there is
# fails: test_all_offenders_and_no_other
# hint: A leaf that fits should not be in the message
# ---

# %% nbgrader={"grade_id": "validate_update"}
def contracts(tree):
    return {
        jax.tree_util.keystr(path): (jnp.shape(leaf), jnp.result_type(leaf))
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def validate_update(params, grads):
    wanted, got = contracts(params), contracts(grads)
    if wanted != got:
        raise ValueError("no fit among " + " ".join("params" + path for path in {**wanted, **got}))

    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
