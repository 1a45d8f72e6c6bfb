# ---
# kind: wrong
# trap: computes on the host, in NumPy
# fails: test_average_runs_inside_jit
# hint: ask for numbers that are not there yet
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    def average(old, new):
        old, new = np.asarray(old), np.asarray(new)
        if old.dtype.kind == "i":
            return new
        mixed = float(decay) * np.float64(old) + (1 - float(decay)) * np.float64(new)
        return mixed.astype(old.dtype)

    return jax.tree.map(average, ema, params)
