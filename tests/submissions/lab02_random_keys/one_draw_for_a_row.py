# ---
# kind: wrong
# trap: draws one number for a whole row
# fails: test_three_quarters_are_kept
# hint: One number for a whole row
# ---

# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    noise = jnp.broadcast_to(jax.vmap(jax.random.normal)(keys["noise"])[:, None], x.shape)
    mask = jax.vmap(lambda key: jax.random.bernoulli(key, 0.75, x.shape[1:]))(keys["mask"])
    return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, (x + 0.1 * noise) / 0.75, 0.0)}
