# ---
# kind: wrong
# trap: leaves room for a hundred shards
# fails: test_shard_is_part_of_the_identity
# hint: meet again
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    row_keys = jax.vmap(lambda row: jax.random.fold_in(key, row * 100 + shard))(rows)
    pairs = jax.vmap(jax.random.split)(row_keys)
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
