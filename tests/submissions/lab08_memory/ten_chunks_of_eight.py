# ---
# kind: wrong
# trap: ten chunks of eight, whatever the number of keys
# fails: test_any_number_of_keys
# hint: written down for about a hundred keys
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    """Ten chunks of eight keys, and what is left in one more."""
    score = lambda key: noisy_score(network, x, key)
    whole = jax.lax.map(jax.vmap(score), keys[:80].reshape(10, 8)).reshape(80, -1)
    scores = jnp.concatenate([whole, jax.vmap(score)(keys[80:])])
    return scores.mean(0), scores.var(0, ddof=1)
