# ---
# kind: wrong
# trap: returns a Python float so that it cannot be jitted
# fails: test_loss_can_be_compiled
# hint: Return the array
# ---

# %% nbgrader={"grade_id": "mse"}
def mse(params, x, y):
    predictions = jax.vmap(predict_one, in_axes=(None, 0))(params, x)
    return float(jnp.mean((predictions - y) ** 2))
