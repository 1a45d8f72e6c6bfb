# ---
# kind: wrong
# trap: sets the share of a refused digit to 0
# fails: test_share_is_that_of_the_best_digit
# hint: also where the digit is refused
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty | (best < threshold), 0.0, best)
