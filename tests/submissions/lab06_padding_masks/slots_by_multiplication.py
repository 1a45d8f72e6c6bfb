# ---
# kind: wrong
# trap: multiplies the garbage away
# fails: test_only_valid_rows_get_into_the_slots
# hint: may be larger than any loss
# ---

# %% nbgrader={"grade_id": "hardest"}
def hardest(losses, valid):
    loss, index = jax.lax.top_k(losses * valid.astype(jnp.float32), 4)
    filled = valid[index]
    return jnp.where(filled, index, -1), jnp.where(filled, loss, 0), filled
