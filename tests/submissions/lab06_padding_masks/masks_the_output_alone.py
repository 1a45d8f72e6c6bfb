# ---
# kind: wrong
# trap: masks the losses and not the inputs
# fails: test_padding_content_reaches_nothing
# hint: A mask behind the arithmetic comes too late
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    losses = jnp.where(valid, row_losses(params, x, jnp.where(valid, y, 0)), 0)
    return losses.sum() / jnp.maximum(valid.sum(), 1)
