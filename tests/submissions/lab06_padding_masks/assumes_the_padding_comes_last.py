# ---
# kind: wrong
# trap: assumes that the padding comes last
# fails: test_valid_alone_says_which_rows
# hint: The padding need not come last
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    valid = jnp.arange(len(x)) < valid.sum()
    x = jnp.where(valid[:, None], x, 0)
    return jnp.where(valid, row_losses(params, x, jnp.where(valid, y, 0)), 0).sum() / jnp.maximum(valid.sum(), 1)
