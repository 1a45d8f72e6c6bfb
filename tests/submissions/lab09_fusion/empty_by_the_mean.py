# ---
# kind: wrong
# trap: takes the mean of the ink, so that thin strokes are empty
# fails: test_share_is_that_of_the_best_digit
# hint: not the mean
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.mean(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
