# ---
# kind: wrong
# trap: draws half of the columns, and uses each draw twice
# fails: test_three_quarters_are_kept_and_scaled
# hint: no two columns drop the same rows
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    def on_each_device(key, x):
        rows = jax.lax.axis_index("data") * len(x) + jnp.arange(len(x))
        keep = jax.vmap(lambda row: jax.random.bernoulli(jax.random.fold_in(key, row), 0.75, (32,)))(rows)
        return jnp.where(jnp.repeat(keep, 2, axis=1), x / 0.75, 0)

    return jax.shard_map(on_each_device, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
