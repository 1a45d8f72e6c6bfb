# ---
# kind: wrong
# trap: cuts the whole tree by rows, parameters and all
# fails: test_parameters_are_whole_on_each_device
# hint: P(). Cut, they are gathered
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    missing = BATCH - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(BATCH) < len(x)
    return jax.device_put((params, *rows), NamedSharding(MESH, P("data")))
