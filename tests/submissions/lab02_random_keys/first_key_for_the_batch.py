# ---
# kind: wrong
# trap: draws the whole batch from the first row's key
# fails: test_each_row_is_drawn_from_its_own_keys
# hint: the whole batch from one key
# ---

# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    noise = jax.random.normal(keys["noise"][0], x.shape)
    mask = jax.random.bernoulli(keys["mask"][0], 0.75, x.shape)
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, (x + 0.1 * noise) / 0.75, 0.0)}
