# ---
# kind: wrong
# trap: adds the scores in bfloat16
# fails: test_mean_is_over_every_key
# hint: should be float32
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    def add(running, key):
        count, mean, squares = running
        score = noisy_score(network, x, key).astype("bfloat16")
        distance = score - mean
        mean = mean + distance / (count + 1)
        return (count + 1, mean, squares + distance * (score - mean)), None

    zeros = jnp.zeros(x.shape[0], "bfloat16")
    (count, mean, squares), _ = jax.lax.scan(add, (jnp.bfloat16(0), zeros, zeros), keys)
    return mean.astype("float32"), (squares / (count - 1)).astype("float32")
