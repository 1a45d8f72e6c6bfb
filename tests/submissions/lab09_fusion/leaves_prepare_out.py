# ---
# kind: wrong
# trap: leaves prepare out, so that faint writing reads otherwise
# fails: test_share_is_that_of_the_best_digit
# hint: after prepare, embed
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, crop))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
