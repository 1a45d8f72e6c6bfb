# ---
# kind: wrong
# trap: the hook counts the steps of this call
# fails: test_resumes_after_an_interrupt
# hint: numbered since its start
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
    key = jax.random.wrap_key_data(values["key"])
    return position | {"done": 0} | {"learned": values | {"key": key}}, settings
