# ---
# kind: wrong
# trap: reads the strength from the global config
# fails: test_training_uses_the_regulariser
# hint: its strength comes from the config
# ---

# %% nbgrader={"grade_id": "objective"}
# digitnet/train.py
def objective(params, x, y, real, key, config):
    """What is minimised, and the summed loss of the real rows."""
    losses = row_losses(params, x, y, key, config["keep"]) * real
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    penalty = config["decay"] * squares + CONFIG["rough"] * roughness(params)
    return losses.sum() / real.sum() + penalty, losses.sum()
