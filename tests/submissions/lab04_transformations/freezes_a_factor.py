# ---
# kind: wrong
# trap: stop_gradient on one factor: half the gradient
# fails: test_penalty_has_a_gradient
# hint: loses half
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    pairs = jax.tree.leaves_with_path(params)
    return strength * sum(jnp.sum(jax.lax.stop_gradient(leaf) * leaf) for path, leaf in pairs if path[-1].key != "b")
