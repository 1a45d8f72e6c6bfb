# ---
# kind: alternative
# about: sets of contracts from eval_shape
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    def of(tree):
        pairs = jax.tree.leaves_with_path(jax.eval_shape(lambda t: t, tree))
        return {("params" + jax.tree_util.keystr(path), leaf.shape, leaf.dtype.name) for path, leaf in pairs}

    odd = of(params) ^ of(grads)
    if odd:
        raise ValueError("\n".join(sorted({path for path, _, _ in odd})))
    if jax.tree.structure(params) != jax.tree.structure(grads):
        raise ValueError(f"{jax.tree.structure(params)} is not {jax.tree.structure(grads)}")
