# ---
# kind: wrong
# trap: multiplies by the mask: 0 * NaN
# fails: test_padding_content_reaches_nothing
# hint: 0 * NaN is NaN on the way back
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    weights = valid.astype(jnp.float32)
    return jnp.sum(row_losses(params, x, jnp.where(valid, y, 0)) * weights) / jnp.maximum(weights.sum(), 1)
