# ---
# kind: wrong
# trap: returns an answer for each padded field
# fails: test_page_has_an_answer_for_each_field
# hint: what was padded is cut off again
# ---

# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    n = len(corners)
    if n > CAPACITY:
        raise ValueError(f"a page has at most {CAPACITY} fields; got {n}.")
    padded = np.zeros((CAPACITY, 2), "int32")
    padded[:n] = corners
    found, shares = read_all(model, page, padded, jnp.float32(threshold))
    return np.asarray(found), np.asarray(shares)
