# ---
# kind: wrong
# trap: one jitted chunk in a Python loop
# fails: test_call_starts_one_program
# hint: with a loop outside of the jit, each turn
# ---

# %% nbgrader={"grade_id": "read_all"}
_chunk = eqx.filter_jit(jax.vmap(read_one, in_axes=(None, None, 0, None)))


def read_all(model, page, corners, threshold):
    parts = [_chunk(model, page, corners[at : at + CHUNK], threshold) for at in range(0, len(corners), CHUNK)]
    return tuple(jnp.concatenate(part) for part in zip(*parts, strict=True))
