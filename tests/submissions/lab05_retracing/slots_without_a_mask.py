# ---
# kind: wrong
# trap: fixed slots without a mask
# fails: test_empty_slots_score_nothing, test_clip_follows_the_path
# hint: Without the mask
# ---

# %% nbgrader={"grade_id": "detections"}
def detections(frame, threshold):
    scores, index = jax.lax.top_k(frame.ravel(), SLOTS)
    places = jnp.stack(jnp.unravel_index(index, frame.shape), axis=1).astype("float32")
    return places, scores, scores > threshold
