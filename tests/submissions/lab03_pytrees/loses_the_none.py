# ---
# kind: wrong
# trap: leaves out what is None
# fails: test_structure_is_kept
# hint: None should stay where it was
# ---

# %% nbgrader={"grade_id": "ema_update"}
def average(old, new, decay):
    if jnp.issubdtype(old.dtype, jnp.integer):
        return new
    return (decay * old + (1 - decay) * new).astype(old.dtype)


def ema_update(ema, params, decay):
    if isinstance(ema, dict):
        return {name: ema_update(ema[name], params[name], decay) for name in ema if ema[name] is not None}
    if isinstance(ema, list):
        return [ema_update(old, new, decay) for old, new in zip(ema, params, strict=True) if old is not None]
    return jax.tree.map(lambda old, new: average(old, new, decay), ema, params)
