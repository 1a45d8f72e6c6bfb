# ---
# kind: wrong
# trap: calls every slot filled
# fails: test_empty_slots_are_marked
# hint: a reader takes them for rows
# ---

# %% nbgrader={"grade_id": "hardest"}
def hardest(losses, valid):
    loss, index = jax.lax.top_k(jnp.where(valid, losses, 0), 4)
    return index, loss, jnp.ones(4, bool)
