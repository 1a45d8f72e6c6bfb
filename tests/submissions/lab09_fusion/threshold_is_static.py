# ---
# kind: wrong
# trap: makes the threshold static
# fails: test_other_values_compile_nothing
# hint: a value that is static is a program of its own
# ---

# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def _read(model, page, corners, threshold):
    return jax.lax.map(lambda corner: read_one(model, page, corner, threshold), corners, batch_size=CHUNK)


def read_all(model, page, corners, threshold):
    traced = isinstance(threshold, jax.core.Tracer)
    return _read(model, page, corners, threshold if traced else float(threshold))
