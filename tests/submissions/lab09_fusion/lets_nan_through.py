# ---
# kind: wrong
# trap: forgets the empty field
# fails: test_empty_field_is_minus_one_and_zero
# hint: a NaN must not reach the answer
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    return digit, best
