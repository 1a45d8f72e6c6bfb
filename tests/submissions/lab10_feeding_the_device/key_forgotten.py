# ---
# kind: wrong
# trap: the key begins anew
# fails: test_resumes_after_an_interrupt, test_resumes_after_a_kill
# hint: parameters, velocities, key, epoch and row
# ---

# %% nbgrader={"grade_id": "packed"}
def packed(run, settings):
    """All that the next step depends on, as a dict for `save`."""
    arrays = jax.device_get(run["learned"] | {"key": jax.random.key_data(run["learned"]["key"])})
    position = {name: run[name] for name in ("epoch", "row", "done")}
    return arrays | position | {"settings": json.dumps(settings)}


def unpacked(values):
    """(run, settings) from what `load` gives."""
    settings = json.loads(str(values.pop("settings")))
    position = {name: int(values.pop(name)) for name in ("epoch", "row", "done")}
    key = begin(settings["seed"])["key"]
    return position | {"learned": values | {"key": key}}, settings
