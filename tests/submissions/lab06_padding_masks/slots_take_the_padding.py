# ---
# kind: wrong
# trap: top_k over all rows
# fails: test_only_valid_rows_get_into_the_slots
# hint: out before top_k looks
# ---

# %% nbgrader={"grade_id": "hardest"}
def hardest(losses, valid):
    loss, index = jax.lax.top_k(losses, 4)
    filled = valid[index]
    return jnp.where(filled, index, -1), jnp.where(filled, loss, 0), filled
