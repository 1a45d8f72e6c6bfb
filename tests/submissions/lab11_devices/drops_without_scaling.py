# ---
# kind: wrong
# trap: keeps entries as they are
# fails: test_three_quarters_are_kept_and_scaled
# hint: x / 0.75
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    def body(key, x):
        rows = jax.lax.axis_index("data") * len(x) + jnp.arange(len(x))
        keep = jax.vmap(lambda row: jax.random.bernoulli(jax.random.fold_in(key, row), 0.75, x.shape[1:]))(rows)
        return jnp.where(keep, x, 0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
