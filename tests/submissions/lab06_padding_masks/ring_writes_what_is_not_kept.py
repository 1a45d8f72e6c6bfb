# ---
# kind: wrong
# trap: writes and counts what is not kept
# fails: test_what_is_not_kept_leaves_no_trace
# hint: neither be written nor counted
# ---

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    def write(ring, pair):
        value, ok = pair
        slot = ring["count"] % 5
        kept = jnp.where(ok, value, 0)
        return {"values": ring["values"].at[slot].set(kept), "count": ring["count"] + 1}, None

    return jax.lax.scan(write, ring, (values, keep))[0]


def recall(ring):
    filled = jnp.arange(5) < ring["count"]
    return jnp.sum(jnp.where(filled, ring["values"], 0)) / jnp.maximum(jnp.sum(filled), 1)
