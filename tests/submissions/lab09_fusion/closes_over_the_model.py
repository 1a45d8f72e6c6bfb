# ---
# kind: wrong
# trap: keeps a jitted reader that closed over its first model
# fails: test_other_values_are_seen, test_second_page_is_read
# hint: What a jitted function closes over
# ---

# %% nbgrader={"grade_id": "read_all"}
_readers = {}


def read_all(model, page, corners, threshold):
    if isinstance(page, jax.core.Tracer):
        return jax.lax.map(lambda corner: read_one(model, page, corner, threshold), corners, batch_size=CHUNK)
    if "reader" not in _readers:
        read = lambda page, corner, threshold: read_one(model, page, corner, threshold)
        _readers["reader"] = jax.jit(
            lambda page, corners, threshold: jax.lax.map(
                lambda corner: read(page, corner, threshold), corners, batch_size=CHUNK
            )
        )
    return _readers["reader"](page, corners, threshold)
