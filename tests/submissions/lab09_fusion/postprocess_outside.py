# ---
# kind: wrong
# trap: returns all ten shares and lets the caller decide
# fails: test_block_ends_with_two_numbers
# hint: have their postprocess outside
# ---

# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def read_all(model, page, corners, threshold):
    shares_of = lambda corner: jax.nn.softmax(score(model, attend(model, embed(model, prepare(cut(page, corner))))))
    return jax.lax.map(shares_of, corners, batch_size=CHUNK)


# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    n = len(corners)
    if n > CAPACITY:
        raise ValueError("too many fields")
    padded = np.zeros((CAPACITY, 2), "int32")
    padded[:n] = corners
    shares = np.nan_to_num(np.asarray(read_all(model, page, padded, jnp.float32(threshold)))[:n])
    best = shares.max(axis=1, initial=0)
    return np.where((best < threshold) | (best == 0), -1, shares.argmax(axis=1)), best
