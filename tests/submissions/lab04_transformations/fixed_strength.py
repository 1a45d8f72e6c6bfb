# ---
# kind: wrong
# trap: the lesson's 0.1, whatever strength is given
# fails: test_penalty_is_the_sum_of_squares
# hint: with the strength that is given
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    pairs = jax.tree.leaves_with_path(params)
    return 0.1 * sum(jnp.sum(leaf**2) for path, leaf in pairs if path[-1].key != "b")
