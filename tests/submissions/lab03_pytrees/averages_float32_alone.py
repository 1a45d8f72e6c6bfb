# ---
# kind: wrong
# trap: averages float32, and takes over what has another dtype
# fails: test_dtypes_and_counters
# hint: bfloat16 where ema is bfloat16
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    def average(old, new):
        if old.dtype != jnp.float32:
            return new
        return decay * old + (1 - decay) * new.astype(old.dtype)

    return jax.tree.map(average, ema, params)
