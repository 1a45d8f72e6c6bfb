# ---
# kind: wrong
# trap: all devices draw with the key that they are given
# fails: test_each_replica_has_its_own_mask
# hint: All devices run one body with one key
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    def body(key, x):
        return jnp.where(jax.random.bernoulli(key, 0.75, x.shape), x / 0.75, 0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
