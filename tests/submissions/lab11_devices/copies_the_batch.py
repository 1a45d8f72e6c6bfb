# ---
# kind: wrong
# trap: gives every device the whole batch
# fails: test_each_device_has_an_eighth_of_the_rows
# hint: eight times the work
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    missing = BATCH - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(BATCH) < len(x)
    return jax.device_put((params, *rows), NamedSharding(MESH, P()))
