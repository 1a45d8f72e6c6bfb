# ---
# kind: wrong
# trap: a Python loop over chunks of keys
# fails: test_keys_stay_in_the_budget
# hint: which is unrolled
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    some = jax.vmap(noisy_score, in_axes=(None, None, 0))
    scores = jnp.concatenate([some(network, x, keys[at : at + 8]) for at in range(0, len(keys), 8)])
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)
