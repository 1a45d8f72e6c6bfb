# ---
# kind: wrong
# trap: makes the jit inside the function
# fails: test_other_values_compile_nothing
# hint: A jit that is made inside the function
# ---

# %% nbgrader={"grade_id": "read_all"}
def read_all(model, page, corners, threshold):
    read = lambda corner: read_one(model, page, corner, threshold)
    return jax.jit(lambda corners: jax.lax.map(read, corners, batch_size=CHUNK))(corners)
