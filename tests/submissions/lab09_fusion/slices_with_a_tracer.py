# ---
# kind: wrong
# trap: slices the page with corner values
# fails: test_one_field_can_be_traced
# hint: asks it for a shape
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    row, column = corner
    crop = page[row : row + 8, column : column + 8]
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
