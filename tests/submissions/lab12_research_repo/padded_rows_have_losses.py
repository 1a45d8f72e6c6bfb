# ---
# kind: wrong
# trap: does not mask the losses of padded rows
# fails: test_reported_losses_did_not_move, test_trained_parameters_did_not_move
# hint: padding that is counted
# ---

# %% nbgrader={"grade_id": "objective"}
# digitnet/train.py
def objective(params, x, y, real, key, config):
    """What is minimised, and the summed loss of the real rows."""
    losses = row_losses(params, x, y, key, config["keep"])
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    penalty = config["decay"] * squares + config["rough"] * roughness(params)
    return losses.sum() / real.sum() + penalty, losses.sum()
