# ---
# kind: wrong
# trap: rounds the number of hits down to an even one, so that answers change
# fails: test_slots_hold_the_hits, test_clip_follows_the_path
# hint: rounding it to a convenient size loses some
# ---

# %% nbgrader={"grade_id": "detections"}
def detections(frame, threshold):
    scores, index = jax.lax.top_k(frame.ravel(), SLOTS)
    hits = (scores > threshold).sum() // 2 * 2
    valid = jnp.arange(SLOTS) < hits
    places = jnp.stack(jnp.unravel_index(index, frame.shape), axis=1).astype("float32")
    return places, jnp.where(valid, scores, 0), valid
