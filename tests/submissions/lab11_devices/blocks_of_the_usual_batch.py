# ---
# kind: wrong
# trap: counts a block as an eighth of BATCH, whatever x has
# fails: test_noise_does_not_depend_on_the_devices
# hint: or BATCH whatever x has
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):

    def on_each_device(key, x):
        base = jax.lax.axis_index("data") * (64 // jax.lax.axis_size("data"))
        keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(base + jnp.arange(len(x)))
        return jnp.where(jax.vmap(lambda k: jax.random.bernoulli(k, 0.75, x.shape[1:]))(keys), x / 0.75, 0)

    return jax.shard_map(on_each_device, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
