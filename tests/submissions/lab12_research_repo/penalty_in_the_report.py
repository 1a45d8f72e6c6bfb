# ---
# kind: wrong
# trap: reports the objective
# fails: test_report_stays_without_penalties, test_reported_losses_did_not_move
# hint: a metric that has the penalty in it
# ---

# %% nbgrader={"grade_id": "objective"}
# digitnet/train.py
def objective(params, x, y, real, key, config):
    """What is minimised, and the summed loss of the real rows."""
    losses = row_losses(params, x, y, key, config["keep"]) * real
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    penalty = config["decay"] * squares + config["rough"] * roughness(params)
    return losses.sum() / real.sum() + penalty, losses.sum() + real.sum() * penalty
