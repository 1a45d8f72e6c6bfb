# ---
# kind: wrong
# trap: gives the bare corners to the block: a compile for each number
# fails: test_another_page_compiles_nothing
# hint: A short last chunk is a new shape
# ---

# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    if len(corners) > CAPACITY:
        raise ValueError("too many fields")
    found, shares = read_all(model, page, jnp.asarray(corners), jnp.float32(threshold))
    return np.asarray(found), np.asarray(shares)
