# ---
# kind: wrong
# trap: drops the threshold
# fails: test_unsure_digits_are_refused
# hint: gives every digit
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.argmax(shares)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
