# ---
# kind: wrong
# trap: builds the model again from its weights
# fails: test_all_fields_are_read
# hint: has lost its activation
# ---

# %% nbgrader={"grade_id": "read_all"}
@jax.jit
def block(weights, page, corners, threshold):
    model = Model(weights)
    return jax.lax.map(lambda corner: read_one(model, page, corner, threshold), corners, batch_size=CHUNK)


def read_all(model, page, corners, threshold):
    return block(model.weights, page, corners, threshold)
