# ---
# kind: wrong
# trap: decides with a Python if on the crop
# fails: test_one_field_can_be_traced
# hint: A Python `if` on a value
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    if jnp.max(crop) < 0.1:
        return -1, 0.0
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    return digit, best
