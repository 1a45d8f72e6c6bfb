# ---
# kind: wrong
# trap: averages the rest after whole chunks, also where it is empty
# fails: test_any_number_of_keys
# hint: the mean of no keys is NaN
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    some = jax.vmap(noisy_score, in_axes=(None, None, 0))

    def merge(running, chunk):
        n, mean, squares = running
        scores = some(network, x, chunk)
        m, its_mean = len(scores), scores.mean(axis=0)
        distance = its_mean - mean
        squares = squares + jnp.sum((scores - its_mean) ** 2, axis=0) + distance**2 * n * m / (n + m)
        return (n + m, mean + distance * m / (n + m), squares), None

    whole = len(keys) // 4 * 4
    zeros = jnp.zeros(len(x))
    running, _ = jax.lax.scan(merge, (0.0, zeros, zeros), keys[:whole].reshape(-1, 4))
    (n, mean, squares), _ = merge(running, keys[whole:])
    return mean, squares / (n - 1)
