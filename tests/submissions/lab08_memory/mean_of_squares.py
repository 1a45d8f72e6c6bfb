# ---
# kind: wrong
# trap: the mean of squares minus the square of the mean
# fails: test_variance_survives_an_offset
# hint: subtracts two large numbers
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    def add(sums, key):
        score = noisy_score(network, x, key)
        return (sums[0] + score, sums[1] + score**2), None

    zeros = jnp.zeros(x.shape[0])
    sums, _ = jax.lax.scan(add, (zeros, zeros), keys)
    n, mean = len(keys), sums[0] / len(keys)
    return mean, (sums[1] / n - mean**2) * n / (n - 1)
