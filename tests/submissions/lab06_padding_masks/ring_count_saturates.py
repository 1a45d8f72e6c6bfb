# ---
# kind: wrong
# trap: shifts the values and stops counting at five
# fails: test_newest_overwrite_the_oldest
# hint: the number of all that were ever kept
# ---

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    stored, count = ring["values"], ring["count"]
    for i in range(4):
        stored = jnp.where(keep[i], jnp.concatenate([values[i : i + 1], stored[:-1]]), stored)
        count = jnp.minimum(count + keep[i], 5)
    return {"values": stored, "count": count}


def recall(ring):
    filled = jnp.arange(5) < ring["count"]
    return jnp.sum(jnp.where(filled, ring["values"], 0)) / jnp.maximum(jnp.sum(filled), 1)
