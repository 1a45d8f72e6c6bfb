# ---
# kind: wrong
# trap: a Python loop over chunks inside jit
# fails: test_program_does_not_grow
# hint: A Python loop over fields or chunks
# ---

# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def read_all(model, page, corners, threshold):
    read = jax.vmap(read_one, in_axes=(None, None, 0, None))
    parts = [read(model, page, corners[at : at + CHUNK], threshold) for at in range(0, len(corners), CHUNK)]
    return tuple(jnp.concatenate(part) for part in zip(*parts, strict=True))
