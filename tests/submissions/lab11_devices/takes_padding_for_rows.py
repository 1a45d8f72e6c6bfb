# ---
# kind: wrong
# trap: marks every row as valid
# fails: test_any_number_of_rows_becomes_one_shape
# hint: valid should be True for the real rows alone
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    missing = BATCH - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.ones(BATCH, bool)
    return jax.device_put(params, NamedSharding(MESH, P())), *jax.device_put(rows, NamedSharding(MESH, P("data")))
