# ---
# kind: wrong
# trap: gives the average the dtype of the parameters
# fails: test_dtypes_and_counters
# hint: float32 over bfloat16 parameters
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    def average(old, new):
        if jnp.issubdtype(old.dtype, jnp.integer):
            return new
        return (decay * old + (1 - decay) * new).astype(new.dtype)

    return jax.tree.map(average, ema, params)
