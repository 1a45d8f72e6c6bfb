# ---
# kind: wrong
# trap: takes the index within the shard alone for an identity
# fails: test_shard_is_part_of_the_identity
# hint: A row number alone
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    pairs = jax.vmap(lambda row: jax.random.split(jax.random.fold_in(key, row)))(rows)
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
