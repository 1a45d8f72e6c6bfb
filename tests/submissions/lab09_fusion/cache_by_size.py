# ---
# kind: wrong
# trap: keeps a program for each number of fields, with what it closed over
# fails: test_second_page_is_read
# hint: together with what it closed over
# ---

# %% nbgrader={"grade_id": "read_page"}
_programs = {}


def read_page(model, page, corners, threshold):
    n = len(corners)
    if n > CAPACITY:
        raise ValueError("too many fields")
    padded = np.zeros((CAPACITY, 2), "int32")
    padded[:n] = corners
    limit = jnp.float32(threshold)
    if "page" not in _programs:
        _programs["page"] = jax.jit(
            lambda some: jax.lax.map(lambda corner: read_one(model, page, corner, limit), some, batch_size=CHUNK)
        )
    found, shares = _programs["page"](padded)
    return np.asarray(found)[:n], np.asarray(shares)[:n]
