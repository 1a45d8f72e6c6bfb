# ---
# kind: wrong
# trap: draws noise and mask from the noise key
# fails: test_noise_and_mask_follow_their_own_keys
# hint: drawn from one key
# ---

# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    noise = jax.vmap(lambda key: jax.random.normal(key, x.shape[1:]))(keys["noise"])
    mask = jax.vmap(lambda key: jax.random.bernoulli(key, 0.75, x.shape[1:]))(keys["noise"])
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, (x + 0.1 * noise) / 0.75, 0.0)}
