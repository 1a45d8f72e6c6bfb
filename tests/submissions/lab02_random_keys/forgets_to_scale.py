# ---
# kind: wrong
# trap: does not divide by the chance of keeping
# fails: test_inputs_are_noisy_masked_and_scaled
# hint: / 0.75
# ---

# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    noise = jax.vmap(lambda key: jax.random.normal(key, x.shape[1:]))(keys["noise"])
    mask = jax.vmap(lambda key: jax.random.bernoulli(key, 0.75, x.shape[1:]))(keys["mask"])
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, x + 0.1 * noise, 0.0)}
