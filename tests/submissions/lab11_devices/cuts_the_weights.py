# ---
# kind: wrong
# trap: cuts w by its rows and copies b alone
# fails: test_parameters_are_whole_on_each_device
# hint: they are gathered at every step
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    missing = BATCH - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(BATCH) < len(x)
    w = jax.device_put(params["w"], NamedSharding(MESH, P("data")))
    b = jax.device_put(params["b"], NamedSharding(MESH, P()))
    return {"w": w, "b": b}, *jax.device_put(rows, NamedSharding(MESH, P("data")))
