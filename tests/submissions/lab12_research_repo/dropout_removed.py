# ---
# kind: wrong
# trap: repairs the repeated mask by taking dropout out
# fails: test_each_step_has_a_key_of_its_own, test_resumed_run_is_the_run
# hint: without a draw there is no dropout
# ---

# %% nbgrader={"grade_id": "objective"}
# digitnet/train.py
def objective(params, x, y, real, key, config):
    """What is minimised, and the summed loss of the real rows."""
    losses = row_losses(params, x, y) * real
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    penalty = config["decay"] * squares + config["rough"] * roughness(params)
    return losses.sum() / real.sum() + penalty, losses.sum()
