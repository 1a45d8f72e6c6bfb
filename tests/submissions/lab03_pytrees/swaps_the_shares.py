# ---
# kind: wrong
# trap: gives the new parameters the share decay
# fails: test_average_has_the_right_shares
# hint: The old average should keep the share decay
# ---

# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    def average(old, new):
        if jnp.issubdtype(old.dtype, jnp.integer):
            return new
        return (decay * new + (1 - decay) * old).astype(old.dtype)

    return jax.tree.map(average, ema, params)
