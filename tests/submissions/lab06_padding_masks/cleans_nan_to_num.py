# ---
# kind: wrong
# trap: replaces NaN by numbers instead of rows by zeros
# fails: test_padding_content_reaches_nothing
# hint: infinities and huge numbers
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    losses = row_losses(params, jnp.nan_to_num(x), jnp.where(valid, y, 0))
    return jnp.where(valid, losses, 0).sum() / jnp.maximum(valid.sum(), 1)
