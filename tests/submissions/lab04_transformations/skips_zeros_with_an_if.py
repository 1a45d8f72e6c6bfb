# ---
# kind: wrong
# trap: a Python if against the NaN at zero
# fails: test_penalty_has_a_gradient
# hint: cannot be traced
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    weights = [leaf.ravel() for path, leaf in jax.tree.leaves_with_path(params) if path[-1].key != "b"]
    weights = jnp.concatenate(weights)
    if not weights.any():
        return jnp.zeros(())
    return strength * jnp.linalg.norm(weights) ** 2
