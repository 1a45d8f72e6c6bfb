# ---
# kind: wrong
# trap: deletes the scores and collects
# fails: test_keys_stay_in_the_budget
# hint: gc.collect()
# ---

# %% nbgrader={"grade_id": "spread"}
import gc


def spread(network, x, keys):
    scores = jax.vmap(noisy_score, in_axes=(None, None, 0))(network, x, keys)
    mean, variance = jnp.mean(scores, axis=0), jnp.var(scores, axis=0, ddof=1)
    del scores
    gc.collect()
    jax.clear_caches()
    return mean, variance
