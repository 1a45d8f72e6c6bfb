# ---
# kind: wrong
# trap: writes the new leaves into the old average
# fails: test_trees_that_came_in_are_left_alone
# hint: Build a new tree
# ---

# %% nbgrader={"grade_id": "ema_update"}
def average(old, new, decay):
    if jnp.issubdtype(old.dtype, jnp.integer):
        return new
    return (decay * old + (1 - decay) * new).astype(old.dtype)


def ema_update(ema, params, decay):
    if isinstance(ema, dict):
        for name in ema:
            ema[name] = ema_update(ema[name], params[name], decay)
        return ema
    if isinstance(ema, list):
        ema[:] = [ema_update(old, new, decay) for old, new in zip(ema, params, strict=True)]
        return ema
    if isinstance(ema, Linear):
        return Linear(average(ema.weight, params.weight, decay), average(ema.bias, params.bias, decay))
    return None if ema is None else average(ema, params, decay)
