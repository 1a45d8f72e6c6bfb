# ---
# kind: wrong
# trap: a vmap without a jit
# fails: test_call_starts_one_program
# hint: Without a jit around all of it
# ---

# %% nbgrader={"grade_id": "read_all"}
def read_all(model, page, corners, threshold):
    return jax.vmap(read_one, in_axes=(None, None, 0, None))(model, page, corners, threshold)
