# ---
# kind: wrong
# trap: takes None in grads for a parameter that is not trained
# fails: test_none_against_a_leaf_is_refused
# hint: A None in one tree and a leaf in the other do not fit
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    odd = []

    def compare(path, p, g):
        if g is None:
            return
        if (jnp.shape(p), jnp.result_type(p)) != (jnp.shape(g), jnp.result_type(g)):
            odd.append("params" + jax.tree_util.keystr(path))

    own = {jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(params, is_leaf=lambda v: v is None)}
    its = {jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(grads, is_leaf=lambda v: v is None)}
    if own != its:
        raise ValueError(" ".join("params" + path for path in own ^ its))
    jax.tree.map_with_path(compare, params, grads)
    if odd:
        raise ValueError(" ".join(odd))
