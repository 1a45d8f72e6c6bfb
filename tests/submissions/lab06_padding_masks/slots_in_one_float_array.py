# ---
# kind: wrong
# trap: makes floats of the indices
# fails: test_only_valid_rows_get_into_the_slots
# hint: an integer
# ---

# %% nbgrader={"grade_id": "hardest"}
def hardest(losses, valid):
    loss, index = jax.lax.top_k(jnp.where(valid, losses, -1), 4)
    filled = loss >= 0
    index = jnp.where(filled, index, -1.0)
    return index, jnp.where(filled, loss, 0), filled
