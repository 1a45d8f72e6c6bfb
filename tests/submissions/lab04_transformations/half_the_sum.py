# ---
# kind: wrong
# trap: half the sum, as a textbook has it
# fails: test_penalty_is_the_sum_of_squares
# hint: no factor of a half
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    pairs = jax.tree.leaves_with_path(params)
    return 0.5 * strength * sum(jnp.sum(leaf**2) for path, leaf in pairs if path[-1].key != "b")
