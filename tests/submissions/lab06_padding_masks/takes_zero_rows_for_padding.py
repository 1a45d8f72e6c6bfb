# ---
# kind: wrong
# trap: takes rows of zeros for padding
# fails: test_padding_content_reaches_nothing
# hint: Replace the padded rows of x in front
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    valid = jnp.any(x != 0, axis=1)
    losses = row_losses(params, x, jnp.where(valid, y, 0))
    return jnp.where(valid, losses, 0).sum() / jnp.maximum(valid.sum(), 1)
