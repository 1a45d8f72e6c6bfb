# ---
# kind: wrong
# trap: returns the noise with its factor
# fails: test_three_quarters_are_kept
# hint: the factor 0.1 is for inputs
# ---

# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    noise = 0.1 * jax.vmap(lambda key: jax.random.normal(key, x.shape[1:]))(keys["noise"])
    mask = jax.vmap(lambda key: jax.random.bernoulli(key, 0.75, x.shape[1:]))(keys["mask"])
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, (x + 0.1 * noise) / 0.75, 0.0)}
