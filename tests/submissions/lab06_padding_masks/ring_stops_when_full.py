# ---
# kind: wrong
# trap: clips at the last slot
# fails: test_newest_overwrite_the_oldest
# hint: count modulo five
# ---

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    def write(ring, pair):
        value, ok = pair
        slot = jnp.minimum(ring["count"], 4)
        kept = jnp.where(ok, value, ring["values"][slot])
        return {"values": ring["values"].at[slot].set(kept), "count": ring["count"] + ok}, None

    return jax.lax.scan(write, ring, (values, keep))[0]


def recall(ring):
    filled = jnp.arange(5) < ring["count"]
    return jnp.sum(jnp.where(filled, ring["values"], 0)) / jnp.maximum(jnp.sum(filled), 1)
