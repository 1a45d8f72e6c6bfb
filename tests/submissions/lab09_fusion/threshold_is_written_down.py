# ---
# kind: wrong
# trap: compares with 0.3 instead of the argument
# fails: test_unsure_digits_are_refused
# hint: the threshold that was given
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= 0.3, jnp.argmax(shares), -1)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
