# ---
# kind: wrong
# trap: folds in the number of the process, which is 0 on every device
# fails: test_each_replica_has_its_own_mask
# hint: what tells them apart
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    def body(key, x):
        key = jax.random.fold_in(key, jax.process_index())
        return jnp.where(jax.random.bernoulli(key, 0.75, x.shape), x / 0.75, 0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
