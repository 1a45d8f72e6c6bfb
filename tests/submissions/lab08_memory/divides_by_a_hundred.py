# ---
# kind: wrong
# trap: divides by the visible number of keys minus 1
# fails: test_variance_divides_by_one_less
# hint: their number minus 1
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.lax.map(lambda key: noisy_score(network, x, key), keys, batch_size=8)
    return scores.mean(axis=0), ((scores - scores.mean(axis=0)) ** 2).sum(axis=0) / 100
