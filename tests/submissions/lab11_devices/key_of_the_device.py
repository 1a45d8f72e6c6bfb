# ---
# kind: wrong
# trap: folds in the number of the device alone
# fails: test_noise_does_not_depend_on_the_devices
# hint: A key for each device
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    def body(key, x):
        key = jax.random.fold_in(key, jax.lax.axis_index("data"))
        return jnp.where(jax.random.bernoulli(key, 0.75, x.shape), x / 0.75, 0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
