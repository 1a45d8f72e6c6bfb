# ---
# kind: wrong
# trap: makes an int of an int threshold, a dtype of its own
# fails: test_another_page_compiles_nothing
# hint: an int is another dtype
# ---

# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    n = len(corners)
    if n > CAPACITY:
        raise ValueError("too many")
    padded = np.zeros((CAPACITY, 2), "int32")
    padded[:n] = corners
    found, shares = read_all(model, page, padded, jnp.asarray(threshold))
    return np.asarray(found)[:n], np.asarray(shares)[:n]
