# ---
# kind: wrong
# trap: divides by the size of the batch, padding included
# fails: test_trained_parameters_did_not_move
# hint: no part in the mean
# ---

# %% nbgrader={"grade_id": "objective"}
# digitnet/train.py
def objective(params, x, y, real, key, config):
    """What is minimised, and the summed loss of the real rows."""
    losses = row_losses(params, x, y, key, config["keep"]) * real
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    penalty = config["decay"] * squares + config["rough"] * roughness(params)
    return losses.mean() + penalty, losses.sum()
