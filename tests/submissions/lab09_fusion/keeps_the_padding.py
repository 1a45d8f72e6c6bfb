# ---
# kind: wrong
# trap: pads to whole chunks and returns the padding, too
# fails: test_all_fields_are_read
# hint: padding must be cut off again
# ---

# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def read_all(model, page, corners, threshold):
    chunks = jnp.pad(corners, ((0, -len(corners) % CHUNK), (0, 0))).reshape(-1, CHUNK, 2)
    read = lambda chunk: jax.vmap(lambda corner: read_one(model, page, corner, threshold))(chunk)
    found, shares = jax.lax.map(read, chunks)
    return found.reshape(-1), shares.reshape(-1)
