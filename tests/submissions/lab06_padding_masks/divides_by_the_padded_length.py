# ---
# kind: wrong
# trap: divides by the padded length
# fails: test_denominator_is_the_valid_count
# hint: more padding, lower loss
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    x = jnp.where(valid[:, None], x, 0)
    return jnp.mean(jnp.where(valid, row_losses(params, x, jnp.where(valid, y, 0)), 0))
