# ---
# kind: alternative
# about: sums of what is left after the first score is taken away
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    first = noisy_score(network, x, keys[0])

    def add(sums, key):
        rest = noisy_score(network, x, key) - first
        return (sums[0] + rest, sums[1] + rest**2), None

    (rest, squares), _ = jax.lax.scan(add, (jnp.zeros_like(first), jnp.zeros_like(first)), keys)
    n = keys.size
    return first + rest / n, (squares - rest**2 / n) / (n - 1)
