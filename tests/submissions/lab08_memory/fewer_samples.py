# ---
# kind: wrong
# trap: takes the first 16 keys
# fails: test_mean_is_over_every_key
# hint: no fewer samples
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.lax.map(lambda key: noisy_score(network, x, key), keys[:16], batch_size=8)
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)
