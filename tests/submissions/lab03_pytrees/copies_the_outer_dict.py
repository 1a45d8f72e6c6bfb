# ---
# kind: wrong
# trap: copies the outer dict and writes into the list inside
# fails: test_trees_that_came_in_are_left_alone
# hint: the lists and layers inside are the caller's too
# ---

# %% nbgrader={"grade_id": "ema_update"}
def average(old, new, decay):
    if jnp.issubdtype(old.dtype, jnp.integer):
        return new
    return (decay * old + (1 - decay) * new).astype(old.dtype)


def ema_update(ema, params, decay):
    moved = dict(ema)
    for name, old in moved.items():
        if isinstance(old, list):
            for i, entry in enumerate(old):
                old[i] = jax.tree.map(lambda o, n: average(o, n, decay), entry, params[name][i])
        else:
            moved[name] = jax.tree.map(lambda o, n: average(o, n, decay), old, params[name])
    return moved
