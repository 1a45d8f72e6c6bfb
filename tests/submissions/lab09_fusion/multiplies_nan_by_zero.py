# ---
# kind: wrong
# trap: multiplies the share of an empty field by 0
# fails: test_empty_field_is_minus_one_and_zero
# hint: a share of NaN is not 0
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), best * (1 - empty)
