# ---
# kind: wrong
# trap: divides by 100, the visible number of keys minus 1
# fails: test_variance_divides_by_one_less
# hint: divided by their number minus 1
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.lax.map(lambda key: noisy_score(network, x, key), keys, batch_size=8)
    mean = scores.mean(0)
    return mean, ((scores - mean) ** 2).sum(0) / 100
