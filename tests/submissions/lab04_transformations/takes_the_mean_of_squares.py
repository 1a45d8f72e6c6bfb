# ---
# kind: wrong
# trap: a mean for the sum
# fails: test_penalty_is_the_sum_of_squares
# hint: the sum and not the mean
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    pairs = jax.tree.leaves_with_path(params)
    return strength * sum(jnp.mean(leaf**2) for path, leaf in pairs if path[-1].key != "b")
