# ---
# kind: wrong
# trap: gives the mask the number of the next row
# fails: test_every_row_use_and_step_has_its_own_keys
# hint: of all rows should be different
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    own = jax.vmap(lambda row: jax.random.fold_in(jax.random.fold_in(key, shard), row))
    return {"noise": own(rows), "mask": own(rows + 1)}
