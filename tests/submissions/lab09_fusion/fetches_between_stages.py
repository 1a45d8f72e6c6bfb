# ---
# kind: wrong
# trap: fetches the shares to decide with NumPy
# fails: test_one_field_can_be_traced
# hint: np.asarray ask a tracer
# ---

# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)
    shares = np.asarray(jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop))))))
    best = jnp.max(shares)
    digit = jnp.where(best >= threshold, jnp.argmax(shares), -1)
    empty = jnp.max(crop) < 0.1
    return jnp.where(empty, -1, digit), jnp.where(empty, 0.0, best)
