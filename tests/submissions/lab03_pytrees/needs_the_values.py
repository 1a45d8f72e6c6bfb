# ---
# kind: wrong
# trap: turns every leaf into a NumPy array to see its shape
# fails: test_check_runs_inside_jit
# hint: Under jit the leaves are tracers
# ---

# %% nbgrader={"grade_id": "validate_update"}
def contracts(tree):
    arrays = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(tree)}
    return {path: (array.shape, array.dtype) for path, array in arrays.items()}


def validate_update(params, grads):
    wanted, got = contracts(params), contracts(grads)
    odd = ["params" + path for path in {**wanted, **got} if wanted.get(path) != got.get(path)]
    if odd:
        raise ValueError(" ".join(odd))

    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
