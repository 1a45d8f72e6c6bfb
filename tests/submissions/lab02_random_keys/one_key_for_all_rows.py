# ---
# kind: wrong
# trap: gives all rows of the batch one key
# fails: test_every_row_use_and_step_has_its_own_keys
# hint: one noise for all
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    noise, mask = jax.random.split(jax.random.fold_in(key, shard))
    return {"noise": jnp.stack([noise] * len(rows)), "mask": jnp.stack([mask] * len(rows))}
