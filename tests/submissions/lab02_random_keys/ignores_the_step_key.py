# ---
# kind: wrong
# trap: folds identities into a global key
# fails: test_every_row_use_and_step_has_its_own_keys
# hint: others at another step
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    shard_key = jax.random.fold_in(KEY, shard)
    pairs = jax.vmap(lambda row: jax.random.split(jax.random.fold_in(shard_key, row)))(rows)
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
