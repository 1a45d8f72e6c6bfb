# ---
# kind: wrong
# trap: takes int32 for the only integer
# fails: test_dtypes_and_counters
# hint: any integer dtype
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    def average(old, new):
        if old.dtype == jnp.int32:
            return new
        return (decay * old + (1 - decay) * new).astype(old.dtype)

    return jax.tree.map(average, ema, params)
