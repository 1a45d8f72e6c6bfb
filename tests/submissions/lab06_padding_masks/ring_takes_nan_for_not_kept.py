# ---
# kind: wrong
# trap: looks for NaN among the values, and not at keep
# fails: test_what_is_not_kept_leaves_no_trace
# hint: `keep` alone
# ---

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    def write(ring, value):
        ok = ~jnp.isnan(value)
        slot = ring["count"] % 5
        kept = jnp.where(ok, value, ring["values"][slot])
        return {"values": ring["values"].at[slot].set(kept), "count": ring["count"] + ok}, None

    return jax.lax.scan(write, ring, values)[0]


def recall(ring):
    filled = jnp.arange(5) < ring["count"]
    return jnp.sum(jnp.where(filled, ring["values"], 0)) / jnp.maximum(jnp.sum(filled), 1)
