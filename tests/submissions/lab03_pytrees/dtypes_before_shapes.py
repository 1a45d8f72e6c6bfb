# ---
# kind: wrong
# trap: collects shapes, and raises at the first dtype
# fails: test_all_offenders_and_no_other
# hint: of different kinds
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    wanted, got = (
        {"params" + jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}
        for tree in (params, grads)
    )
    odd = [f"{name}: in one tree alone" for name in wanted.keys() ^ got.keys()]
    for name in wanted.keys() & got.keys():
        if wanted[name].shape != got[name].shape:
            odd.append(f"{name}: {wanted[name].shape} against {got[name].shape}")
        elif wanted[name].dtype != got[name].dtype:
            raise ValueError(f"{name}: {wanted[name].dtype} against {got[name].dtype}")
    if odd:
        raise ValueError("; ".join(odd))
    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError("the containers differ")
