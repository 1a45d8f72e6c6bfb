# ---
# kind: wrong
# trap: makes BATCH rows for each device
# fails: test_any_number_of_rows_becomes_one_shape, test_each_device_has_an_eighth_of_the_rows
# hint: not BATCH rows for each device
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    size = 8 * BATCH
    missing = size - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(size) < len(x)
    return jax.device_put(params, NamedSharding(MESH, P())), *jax.device_put(rows, NamedSharding(MESH, P("data")))
