# ---
# kind: wrong
# trap: makes Python numbers of the rows
# fails: test_step_can_be_traced
# hint: int(row)
# ---

# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    pairs = jnp.stack([jax.random.split(jax.random.fold_in(jax.random.fold_in(key, shard), int(row))) for row in rows])
    return {"noise": pairs[:, 0], "mask": pairs[:, 1]}
