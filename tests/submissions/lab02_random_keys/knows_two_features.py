# ---
# kind: wrong
# trap: draws for two features, as in the example
# fails: test_step_can_be_traced
# hint: numbers of rows and features
# ---

# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    noise = jax.vmap(lambda key: jax.random.normal(key, (2,)))(keys["noise"])
    mask = jax.vmap(lambda key: jax.random.bernoulli(key, 0.75, (2,)))(keys["mask"])
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, (x + 0.1 * noise) / 0.75, 0.0)}
