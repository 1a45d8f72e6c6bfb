# ---
# kind: wrong
# trap: the count becomes a float
# fails: test_ring_keeps_its_form
# hint: count an integer
# ---

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    stored, count = ring["values"], ring["count"]
    for value, ok in zip(values, keep):
        slot = count.astype(jnp.int32) % 5
        stored = stored.at[slot].set(jnp.where(ok, value, stored[slot]))
        count = count + ok.astype(jnp.float32)
    return {"values": stored, "count": count}


def recall(ring):
    filled = jnp.arange(5) < ring["count"]
    return jnp.sum(jnp.where(filled, ring["values"], 0)) / jnp.maximum(jnp.sum(filled), 1)
