# ---
# kind: wrong
# trap: gives keys to places in the batch
# fails: test_example_keeps_its_keys
# hint: Keys by position
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    noise, mask = jax.random.split(jax.random.fold_in(key, shard), (2, len(rows)))
    return {"noise": noise, "mask": mask}
