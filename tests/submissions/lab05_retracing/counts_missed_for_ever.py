# ---
# kind: wrong
# trap: never sets the count of missed frames back
# fails: test_frame_gives_the_numbers
# hint: sets missed to 0
# ---

# %% nbgrader={"grade_id": "track_frame"}
def one_frame(state, frame, threshold, gain):
    places, scores, valid = detections(frame, threshold)
    found, total = valid.any(), scores.sum()
    predicted = state["position"] + state["velocity"]
    measured = scores @ places / jnp.where(found, total, 1)
    error = jnp.where(found, measured - predicted, 0)
    return {
        "position": predicted + gain * error,
        "velocity": state["velocity"] + 0.5 * gain * error,
        "missed": state["missed"] + ~found,
    }


track_frame = jax.jit(one_frame)
