# ---
# kind: wrong
# trap: chunks of all fields are vmap again
# fails: test_plan_stays_in_the_budget
# hint: a chunk that is as wide as the page
# ---

# %% nbgrader={"grade_id": "read_all"}
def read_all(model, page, corners, threshold):
    return _read_in_chunks(model, page, corners, threshold)


@eqx.filter_jit
def _read_in_chunks(model, page, corners, threshold):
    read = lambda corner: read_one(model, page, corner, threshold)
    return jax.lax.map(read, corners, batch_size=len(corners))
