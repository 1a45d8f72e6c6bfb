# ---
# kind: wrong
# trap: makes dicts of the layers
# fails: test_structure_is_kept
# hint: layers layers
# ---

# %% nbgrader={"grade_id": "ema_update"}
def average(old, new, decay):
    if jnp.issubdtype(old.dtype, jnp.integer):
        return new
    return (decay * old + (1 - decay) * new).astype(old.dtype)


def ema_update(ema, params, decay):
    if isinstance(ema, dict):
        return {name: ema_update(ema[name], params[name], decay) for name in ema}
    if isinstance(ema, list):
        return [ema_update(old, new, decay) for old, new in zip(ema, params, strict=True)]
    if isinstance(ema, Linear):
        return ema_update(vars(ema), vars(params), decay)
    return None if ema is None else average(ema, params, decay)
