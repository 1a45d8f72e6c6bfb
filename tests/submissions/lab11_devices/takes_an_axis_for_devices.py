# ---
# kind: wrong
# trap: reshapes to a leading axis of eight for vmap, on one device
# fails: test_each_device_has_an_eighth_of_the_rows
# hint: an axis and no hardware
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    missing = BATCH - len(x)
    rows = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing)), np.arange(BATCH) < len(x)
    x, y, valid = (jnp.asarray(part).reshape(8, 8, *part.shape[1:]) for part in rows)
    return jax.device_put(params, NamedSharding(MESH, P())), x, y, valid
