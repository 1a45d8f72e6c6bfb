# ---
# kind: wrong
# trap: asks whether a NaN came out, so that dirt is read
# fails: test_empty_field_is_minus_one_and_zero
# hint: a little dirt, below 0.1
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.isnan(best)
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
