# ---
# kind: wrong
# trap: averages the means of chunks of unequal size
# fails: test_mean_is_over_every_key
# hint: weighted as a whole chunk
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    whole = len(keys) // 20 * 20
    some = jax.vmap(noisy_score, in_axes=(None, None, 0))
    many = jax.lax.map(lambda chunk: some(network, x, chunk).mean(axis=0), keys[:whole].reshape(-1, 20))
    means = jnp.concatenate([many, some(network, x, keys[whole:]).mean(axis=0)[None]])
    mean = means.mean(axis=0)
    squares = jax.lax.map(lambda key: (noisy_score(network, x, key) - mean) ** 2, keys, batch_size=8)
    return mean, squares.sum(axis=0) / (len(keys) - 1)
