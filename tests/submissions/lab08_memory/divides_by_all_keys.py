# ---
# kind: wrong
# trap: the biased variance
# fails: test_variance_divides_by_one_less
# hint: minus 1
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.lax.map(lambda key: noisy_score(network, x, key), keys, batch_size=8)
    return scores.mean(axis=0), scores.var(axis=0)
