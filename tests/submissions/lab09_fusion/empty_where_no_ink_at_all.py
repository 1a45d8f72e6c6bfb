# ---
# kind: wrong
# trap: takes only nothing at all for empty
# fails: test_empty_field_is_minus_one_and_zero
# hint: a little dirt, below 0.1
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.max(crop) == 0
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
