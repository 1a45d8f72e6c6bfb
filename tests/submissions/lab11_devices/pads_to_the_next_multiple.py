# ---
# kind: wrong
# trap: pads to the next multiple of eight
# fails: test_any_number_of_rows_becomes_one_shape
# hint: a new shape each time
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    size = -(-len(x) // 8) * 8
    missing = size - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(size) < len(x)
    return jax.device_put(params, NamedSharding(MESH, P())), *jax.device_put(rows, NamedSharding(MESH, P("data")))
