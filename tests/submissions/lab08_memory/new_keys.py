# ---
# kind: wrong
# trap: splits new keys from the first
# fails: test_mean_is_over_every_key
# hint: split or folded
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.lax.map(lambda key: noisy_score(network, x, key), jax.random.split(keys[0], len(keys)), batch_size=8)
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)
