# ---
# kind: wrong
# trap: takes whatever dtype the arithmetic gives
# fails: test_dtypes_and_counters
# hint: should have ema's dtype at each leaf
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    def average(old, new):
        if jnp.issubdtype(old.dtype, jnp.integer):
            return new
        return decay * old + (1 - decay) * new

    return jax.tree.map(average, ema, params)
