# ---
# kind: wrong
# trap: two helpers split the same parent
# fails: test_every_row_use_and_step_has_its_own_keys
# hint: Two helpers that split one parent
# ---

# %% nbgrader={"grade_id": "example_keys"}
def keys_for(key, shard, rows):
    _, own = jax.random.split(jax.random.fold_in(key, shard))
    return jax.vmap(lambda row: jax.random.fold_in(own, row))(rows)


def example_keys(key, shard, rows):
    return {"noise": keys_for(key, shard, rows), "mask": keys_for(key, shard, rows)}
