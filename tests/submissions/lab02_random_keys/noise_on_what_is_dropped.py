# ---
# kind: wrong
# trap: adds the noise after the mask
# fails: test_inputs_are_noisy_masked_and_scaled
# hint: the noise comes first
# ---

# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    noise = jax.vmap(lambda key: jax.random.normal(key, x.shape[1:]))(keys["noise"])
    mask = jax.vmap(lambda key: jax.random.bernoulli(key, 0.75, x.shape[1:]))(keys["mask"])
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, x / 0.75, 0.0) + 0.1 * noise}
