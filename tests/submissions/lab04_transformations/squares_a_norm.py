# ---
# kind: wrong
# trap: a squared norm: NaN gradient at zero
# fails: test_penalty_has_a_gradient
# hint: NaN there
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    weights = [leaf.ravel() for path, leaf in jax.tree.leaves_with_path(params) if path[-1].key != "b"]
    return strength * jnp.linalg.norm(jnp.concatenate(weights)) ** 2
