# ---
# kind: wrong
# trap: starts at slot 0 with each push
# fails: test_newest_overwrite_the_oldest
# hint: count goes on from push to push
# ---

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    order = jnp.argsort(~keep, stable=True)
    kept = jnp.arange(4) < keep.sum()
    stored = ring["values"].at[:4].set(jnp.where(kept, values[order], ring["values"][:4]))
    return {"values": stored, "count": ring["count"] + keep.sum()}


def recall(ring):
    filled = jnp.arange(5) < ring["count"]
    return jnp.sum(jnp.where(filled, ring["values"], 0)) / jnp.maximum(jnp.sum(filled), 1)
