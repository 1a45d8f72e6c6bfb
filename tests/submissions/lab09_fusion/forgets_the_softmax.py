# ---
# kind: wrong
# trap: takes the largest score for the share
# fails: test_share_is_that_of_the_best_digit
# hint: none of them left out
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = score(model, attend(model, embed(model, prepare(crop))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
