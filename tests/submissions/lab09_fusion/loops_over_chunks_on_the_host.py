# ---
# kind: wrong
# trap: a loop over chunks on the host, each fetched before the next
# fails: test_page_starts_one_program
# hint: A loop over chunks on the host
# ---

# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    n, found, shares = len(corners), [], []
    if n > CAPACITY:
        raise ValueError("too many fields")
    for at in range(0, n, CHUNK):
        chunk = np.zeros((CHUNK, 2), "int32")
        chunk[: len(corners[at : at + CHUNK])] = corners[at : at + CHUNK]
        digits_, shares_ = read_all(model, page, chunk, jnp.float32(threshold))
        found.extend(np.asarray(digits_))
        shares.extend(np.asarray(shares_))
    return np.array(found[:n]), np.array(shares[:n])
