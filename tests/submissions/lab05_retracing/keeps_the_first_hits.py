# ---
# kind: wrong
# trap: keeps the first hits in reading order, then sorts them
# fails: test_surplus_hits_leave_the_strongest, test_clip_follows_the_path
# hint: keeps the first ones in reading order
# ---

# %% nbgrader={"grade_id": "detections"}
def detections(frame, threshold):
    rows, columns = jnp.nonzero(frame > threshold, size=SLOTS, fill_value=0)
    valid = jnp.arange(SLOTS) < (frame > threshold).sum()
    scores = jnp.where(valid, frame[rows, columns], 0)
    order = jnp.argsort(-scores)
    places = jnp.stack([rows, columns], axis=1).astype("float32")
    return places[order], scores[order], valid[order]
