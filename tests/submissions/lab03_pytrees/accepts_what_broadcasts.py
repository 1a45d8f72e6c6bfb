# ---
# kind: wrong
# trap: accepts every shape that broadcasts to the parameter's
# fails: test_broadcast_is_refused_by_path
# hint: should be exactly the parameter's
# ---

# %% nbgrader={"grade_id": "validate_update"}
def contracts(tree):
    return {
        jax.tree_util.keystr(path): (jnp.shape(leaf), jnp.result_type(leaf))
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def fits(wanted, got):
    try:
        return np.broadcast_shapes(wanted[0], got[0]) == wanted[0] and wanted[1] == got[1]
    except ValueError:
        return False


def validate_update(params, grads):
    wanted, got = contracts(params), contracts(grads)
    odd = [path for path in wanted.keys() | got.keys() if path not in wanted or path not in got]
    odd += [path for path in wanted.keys() & got.keys() if not fits(wanted[path], got[path])]
    if odd:
        raise ValueError(" ".join("params" + path for path in odd))

    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
