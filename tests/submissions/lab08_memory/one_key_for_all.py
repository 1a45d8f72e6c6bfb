# ---
# kind: wrong
# trap: uses the first key for every sample
# fails: test_mean_is_over_every_key
# hint: Each of the keys
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.lax.map(lambda number: noisy_score(network, x, keys[number]), jnp.zeros(len(keys), int), batch_size=8)
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)
