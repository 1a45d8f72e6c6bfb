# ---
# kind: wrong
# trap: an empty ring divides by zero
# fails: test_half_full_ring_is_averaged_over_its_values
# hint: divide by at least 1
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
    return jnp.mean(ring["values"], where=jnp.arange(5) < ring["count"])
