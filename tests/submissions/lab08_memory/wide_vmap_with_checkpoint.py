# ---
# kind: wrong
# trap: jax.checkpoint around the wide vmap, where nothing is differentiated
# fails: test_keys_stay_in_the_budget
# hint: A wide vmap holds
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.checkpoint(jax.vmap(noisy_score, in_axes=(None, None, 0)))(network, x, keys)
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)
