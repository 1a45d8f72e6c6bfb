# ---
# kind: wrong
# trap: divides by the sum of no scores
# fails: test_frame_without_hits_coasts, test_clip_follows_the_path
# hint: make the divisor safe
# ---

# %% nbgrader={"grade_id": "track_frame"}
def one_frame(state, frame, threshold, gain):
    places, scores, valid = detections(frame, threshold)
    found, total = valid.any(), scores.sum()
    predicted = state["position"] + state["velocity"]
    measured = scores @ places / total
    error = measured - predicted
    return {
        "position": predicted + gain * error,
        "velocity": state["velocity"] + 0.5 * gain * error,
        "missed": jnp.where(found, 0, state["missed"] + 1),
    }


track_frame = jax.jit(one_frame)
