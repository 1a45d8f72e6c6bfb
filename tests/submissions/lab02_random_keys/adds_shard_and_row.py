# ---
# kind: wrong
# trap: adds up shard and row
# fails: test_shard_is_part_of_the_identity
# hint: meet again
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    pairs = jax.vmap(lambda n: jax.random.split(jax.random.fold_in(key, n)))(shard + rows)
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
