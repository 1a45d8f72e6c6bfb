# ---
# kind: wrong
# trap: averages the variances of the chunks
# fails: test_variance_divides_by_one_less
# hint: the variances of chunks
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    some = jax.vmap(noisy_score, in_axes=(None, None, 0))

    def moments(chunk):
        scores = some(network, x, chunk)
        return scores.mean(axis=0), scores.var(axis=0)

    _, variances = jax.lax.map(moments, keys[: len(keys) // 10 * 10].reshape(-1, 10))
    mean = jax.lax.map(lambda key: noisy_score(network, x, key), keys).mean(axis=0)
    return mean, variances.mean(axis=0)
