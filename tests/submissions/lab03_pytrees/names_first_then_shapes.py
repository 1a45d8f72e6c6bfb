# ---
# kind: wrong
# trap: raises for missing and extra leaves before it looks at shapes
# fails: test_all_offenders_and_no_other
# hint: of different kinds
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    wanted, got = (
        {"params" + jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}
        for tree in (params, grads)
    )
    missing, extra = sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))
    if missing or extra:
        raise ValueError(f"missing in grads: {missing}; not in params: {extra}")
    odd = [
        f"{name}: {leaf.shape} {leaf.dtype} against {got[name].shape} {got[name].dtype}"
        for name, leaf in wanted.items()
        if (leaf.shape, leaf.dtype) != (got[name].shape, got[name].dtype)
    ]
    if odd:
        raise ValueError("; ".join(odd))
    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
