# ---
# kind: wrong
# trap: takes a slot that holds 0 for an empty one
# fails: test_half_full_ring_is_averaged_over_its_values
# hint: A kept 0 is a value
# ---

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    def write(ring, pair):
        value, ok = pair
        slot = ring["count"] % 5
        kept = jnp.where(ok, value, ring["values"][slot])
        return {"values": ring["values"].at[slot].set(kept), "count": ring["count"] + ok}, None

    return jax.lax.scan(write, ring, (values, keep))[0]


def recall(ring):
    return jnp.sum(ring["values"]) / jnp.maximum(jnp.sum(ring["values"] != 0), 1)
