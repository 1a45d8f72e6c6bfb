# ---
# kind: wrong
# trap: numbers examples by shard times the length of the batch
# fails: test_example_keeps_its_keys
# hint: the length of the batch
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    pairs = jax.vmap(lambda n: jax.random.split(jax.random.fold_in(key, n)))(shard * len(rows) + rows)
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
