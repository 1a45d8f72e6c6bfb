# ---
# kind: wrong
# trap: numbers the examples in float32, which has no room for a thousand shards
# fails: test_shard_is_part_of_the_identity
# hint: in float32
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    identities = (shard * 1e6 + rows).astype(jnp.uint32)
    row_keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(identities)
    pairs = jax.vmap(jax.random.split)(row_keys)
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
