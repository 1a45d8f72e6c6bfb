# ---
# kind: wrong
# trap: makes its own key
# fails: test_noise_is_that_of_the_key
# hint: A key that is made inside
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    def body(key, x):
        rows = jax.lax.axis_index("data") * len(x) + jnp.arange(len(x))
        keep = jax.vmap(
            lambda row: jax.random.bernoulli(jax.random.fold_in(jax.random.key(0), row), 0.75, x.shape[1:])
        )(rows)
        return jnp.where(keep, x / 0.75, 0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(key, x)
