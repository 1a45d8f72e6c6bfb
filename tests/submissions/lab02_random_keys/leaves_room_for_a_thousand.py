# ---
# kind: wrong
# trap: leaves room for a thousand rows in a shard
# fails: test_shard_is_part_of_the_identity
# hint: room for a million rows
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    pairs = jax.vmap(lambda n: jax.random.split(jax.random.fold_in(key, n)))(shard * 1000 + rows)
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
