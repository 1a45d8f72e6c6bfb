# ---
# kind: wrong
# trap: divides by the count plus one, to be safe
# fails: test_denominator_is_the_valid_count
# hint: divided by how many they are
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    x = jnp.where(valid[:, None], x, 0)
    return jnp.where(valid, row_losses(params, x, jnp.where(valid, y, 0)), 0).sum() / (valid.sum() + 1)
