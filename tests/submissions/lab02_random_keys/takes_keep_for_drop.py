# ---
# kind: wrong
# trap: takes 0.75 for the chance of dropping
# fails: test_three_quarters_are_kept
# hint: the chance of True
# ---

# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    noise = jax.vmap(lambda key: jax.random.normal(key, x.shape[1:]))(keys["noise"])
    mask = jax.vmap(lambda key: jax.random.bernoulli(key, 0.25, x.shape[1:]))(keys["mask"])
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, (x + 0.1 * noise) / 0.75, 0.0)}
