# ---
# kind: wrong
# trap: takes what is named steps for the counter
# fails: test_dtypes_and_counters
# hint: whatever its name
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    def average(path, old, new):
        if getattr(path[-1], "key", None) == "steps":
            return new
        return (decay * old + (1 - decay) * new).astype(old.dtype)

    return jax.tree.map_with_path(average, ema, params)
