# ---
# kind: wrong
# trap: pads and cuts with jnp
# fails: test_another_page_compiles_nothing
# hint: slice or jnp.pad of another
# ---

# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    n = len(corners)
    if n > CAPACITY:
        raise ValueError("too many fields")
    padded = jnp.pad(jnp.asarray(corners), ((0, CAPACITY - n), (0, 0)))
    found, shares = read_all(model, page, padded, jnp.float32(threshold))
    return np.asarray(found[:n]), np.asarray(shares[:n])
