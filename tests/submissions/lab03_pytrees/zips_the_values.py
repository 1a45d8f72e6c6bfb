# ---
# kind: wrong
# trap: pairs the values of two dicts in insertion order
# fails: test_partners_are_found_by_name
# hint: pairs by insertion
# ---

# %% nbgrader={"grade_id": "ema_update"}
def average(old, new, decay):
    if jnp.issubdtype(old.dtype, jnp.integer):
        return new
    return (decay * old + (1 - decay) * new).astype(old.dtype)


def ema_update(ema, params, decay):
    if isinstance(ema, dict):
        pairs = zip(ema.items(), params.values(), strict=True)
        return {name: ema_update(old, new, decay) for (name, old), new in pairs}
    if isinstance(ema, list):
        return [ema_update(old, new, decay) for old, new in zip(ema, params, strict=True)]
    return None if ema is None else jax.tree.map(lambda old, new: average(old, new, decay), ema, params)
