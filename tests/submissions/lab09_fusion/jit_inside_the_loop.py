# ---
# kind: wrong
# trap: a jit inside the loop over chunks, around a lambda
# fails: test_other_values_compile_nothing
# hint: around a lambda is new at each call
# ---

# %% nbgrader={"grade_id": "read_all"}
def read_all(model, page, corners, threshold):
    parts = []
    for at in range(0, len(corners), CHUNK):
        read = jax.jit(lambda some: jax.vmap(lambda corner: read_one(model, page, corner, threshold))(some))
        parts.append(read(corners[at : at + CHUNK]))
    return tuple(jnp.concatenate(part) for part in zip(*parts, strict=True))
