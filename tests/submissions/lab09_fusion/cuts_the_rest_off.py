# ---
# kind: wrong
# trap: reads the first fields and forgets the rest
# fails: test_too_many_fields_are_refused
# hint: loses answers in silence
# ---

# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    corners = corners[:CAPACITY]
    n = len(corners)
    if n > CAPACITY:
        raise ValueError(f"a page has at most {CAPACITY} fields; got {n}.")
    padded = np.zeros((CAPACITY, 2), "int32")
    padded[:n] = corners
    found, shares = read_all(model, page, padded, jnp.float32(threshold))
    return np.asarray(found)[:n], np.asarray(shares)[:n]
