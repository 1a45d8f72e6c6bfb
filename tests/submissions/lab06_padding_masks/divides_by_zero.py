# ---
# kind: wrong
# trap: an empty batch divides by zero
# fails: test_empty_batch_is_zero
# hint: 0 / 0 is NaN
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    x = jnp.where(valid[:, None], x, 0)
    return jnp.where(valid, row_losses(params, x, jnp.where(valid, y, 0)), 0).sum() / valid.sum()
