# ---
# kind: wrong
# trap: a chunk as large as the number of keys
# fails: test_keys_stay_in_the_budget
# hint: chunk of all keys
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.lax.map(lambda key: noisy_score(network, x, key), keys, batch_size=len(keys))
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)
