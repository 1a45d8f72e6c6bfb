# ---
# kind: wrong
# trap: gives column and row
# fails: test_slots_hold_the_hits
# hint: row and column swapped
# ---

# %% nbgrader={"grade_id": "detections"}
def detections(frame, threshold):
    scores, index = jax.lax.top_k(frame.ravel(), SLOTS)
    valid = scores > threshold
    rows, columns = jnp.unravel_index(index, frame.shape)
    return jnp.stack([columns, rows], axis=1).astype("float32"), jnp.where(valid, scores, 0), valid
