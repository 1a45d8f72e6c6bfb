# ---
# kind: wrong
# trap: trusts jnp.mean(where=) with the gradient
# fails: test_padding_content_reaches_nothing
# hint: Replace the padded rows of x in front
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    return jnp.where(valid.any(), jnp.mean(row_losses(params, x, jnp.where(valid, y, 0)), where=valid), 0)
