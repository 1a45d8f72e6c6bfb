# ---
# kind: wrong
# trap: places the batch and leaves the parameters on the first device
# fails: test_parameters_are_whole_on_each_device
# hint: left where they were
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    missing = BATCH - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(BATCH) < len(x)
    return jax.device_put(params), *jax.device_put(rows, NamedSharding(MESH, P("data")))
