# ---
# kind: wrong
# trap: gathers the result on every device
# fails: test_nothing_travels_for_noise
# hint: the result should lie in eighths
# ---

# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    noisy = jnp.where(jax.random.bernoulli(key, 0.75, x.shape), x / 0.75, 0)
    return jax.reshard(noisy, NamedSharding(mesh, P()))
