# ---
# kind: wrong
# trap: hands the Python threshold to filter_jit
# fails: test_another_page_compiles_nothing
# hint: A threshold that is a Python number
# ---

# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    n = len(corners)
    if n > CAPACITY:
        raise ValueError(f"a page has at most {CAPACITY} fields; got {n}.")
    padded = np.zeros((CAPACITY, 2), "int32")
    padded[:n] = corners
    found, shares = read_all(model, page, padded, threshold)
    return np.asarray(found)[:n], np.asarray(shares)[:n]
