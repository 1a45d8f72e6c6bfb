# ---
# kind: wrong
# trap: cleans the inputs and keeps their losses
# fails: test_denominator_is_the_valid_count
# hint: and pull it
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    x = jnp.where(valid[:, None], x, 0)
    return row_losses(params, x, jnp.where(valid, y, 0)).sum() / jnp.maximum(valid.sum(), 1)
