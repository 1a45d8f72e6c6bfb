# ---
# kind: wrong
# trap: returns ten scores beside the answers
# fails: test_block_ends_with_two_numbers
# hint: and nothing else
# ---

# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def read_all(model, page, corners, threshold):
    def read(corner):
        tokens = embed(model, prepare(cut(page, corner)))
        return *read_one(model, page, corner, threshold), score(model, attend(model, tokens))

    return jax.lax.map(read, corners, batch_size=CHUNK)


# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    n = len(corners)
    if n > CAPACITY:
        raise ValueError(f"a page has at most {CAPACITY} fields; got {n}.")
    padded = np.zeros((CAPACITY, 2), "int32")
    padded[:n] = corners
    found, shares, _ = read_all(model, page, padded, jnp.float32(threshold))
    return np.asarray(found)[:n], np.asarray(shares)[:n]
