# ---
# kind: wrong
# trap: starts each block at device * BATCH
# fails: test_noise_does_not_depend_on_the_devices
# hint: counted with the wrong batch
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    def body(key, x):
        rows = jax.lax.axis_index("data") * BATCH + jnp.arange(len(x))
        keep = jax.vmap(lambda row: jax.random.bernoulli(jax.random.fold_in(key, row), 0.75, x.shape[1:]))(rows)
        return jnp.where(keep, x / 0.75, 0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
