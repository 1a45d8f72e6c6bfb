# ---
# kind: wrong
# trap: takes the label -1 or 0 for padding
# fails: test_valid_alone_says_which_rows
# hint: no label and no value of x stands for padding
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    x = jnp.where(valid[:, None], x, 0)
    valid = valid | (y > 0)
    return jnp.where(valid, row_losses(params, x, y), 0).sum() / jnp.maximum(valid.sum(), 1)
