# ---
# kind: wrong
# trap: halves the bytes by computing in bfloat16
# fails: test_all_fields_are_read
# hint: bfloat16 changes the shares
# ---

# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def read_all(model, page, corners, threshold):
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16) if eqx.is_array(leaf) else leaf, model)
    read = lambda corner: read_one(half, page.astype(jnp.bfloat16), corner, threshold)
    found, shares = jax.lax.map(read, corners, batch_size=2 * CHUNK)
    return found, shares.astype(jnp.float32)
