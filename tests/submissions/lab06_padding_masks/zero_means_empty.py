# ---
# kind: wrong
# trap: takes a loss of 0 for an empty slot
# fails: test_loss_of_zero_is_a_row
# hint: no mark for padding
# ---

# %% nbgrader={"grade_id": "hardest"}
def hardest(losses, valid):
    loss, index = jax.lax.top_k(jnp.where(valid, losses, 0), 4)
    filled = loss > 0
    return jnp.where(filled, index, -1), loss, filled
