# ---
# kind: wrong
# trap: deals the rows out in turn, so that no device is empty
# fails: test_placing_changes_no_value, test_any_number_of_rows_becomes_one_shape
# hint: in their order
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    missing = BATCH - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(BATCH) < len(x)
    rows = [np.concatenate([part[device::8] for device in range(8)]) for part in rows]
    return jax.device_put(params, NamedSharding(MESH, P())), *jax.device_put(
        tuple(rows), NamedSharding(MESH, P("data"))
    )
