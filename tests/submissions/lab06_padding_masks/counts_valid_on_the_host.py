# ---
# kind: wrong
# trap: asks the mask on the host
# fails: test_loss_runs_inside_jit
# hint: want numbers on the host
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    count = int(np.asarray(valid).sum())
    if count == 0:
        return jnp.float32(0)
    return row_losses(params, x[:count], y[:count]).sum() / count
