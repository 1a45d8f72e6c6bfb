# ---
# kind: wrong
# trap: drops the last short chunk
# fails: test_all_fields_are_read
# hint: leave the last
# ---

# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def read_all(model, page, corners, threshold):
    chunks = corners[: len(corners) // CHUNK * CHUNK].reshape(-1, CHUNK, 2)
    read = lambda chunk: jax.vmap(lambda corner: read_one(model, page, corner, threshold))(chunk)
    found, shares = jax.lax.map(read, chunks)
    return found.reshape(-1), shares.reshape(-1)
