# ---
# kind: wrong
# trap: averages a counter too
# fails: test_dtypes_and_counters
# hint: the average of two counts is no count
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    return jax.tree.map(lambda old, new: (decay * old + (1 - decay) * new).astype(old.dtype), ema, params)
