# ---
# kind: wrong
# trap: takes every scalar for a counter
# fails: test_dtypes_and_counters
# hint: a float scalar
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    def average(old, new):
        if old.ndim == 0:
            return new.astype(old.dtype)
        return (decay * old + (1 - decay) * new).astype(old.dtype)

    return jax.tree.map(average, ema, params)
