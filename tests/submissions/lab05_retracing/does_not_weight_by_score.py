# ---
# kind: wrong
# trap: takes the plain mean of the places
# fails: test_frame_gives_the_numbers
# hint: weighted by its score
# ---

# %% nbgrader={"grade_id": "track_frame"}
def one_frame(state, frame, threshold, gain):
    places, scores, valid = detections(frame, threshold)
    found, total, scores = valid.any(), valid.sum(), valid.astype(float)
    predicted = state["position"] + state["velocity"]
    measured = scores @ places / jnp.where(found, total, 1)
    error = jnp.where(found, measured - predicted, 0)
    return {
        "position": predicted + gain * error,
        "velocity": state["velocity"] + 0.5 * gain * error,
        "missed": jnp.where(found, 0, state["missed"] + 1),
    }


track_frame = jax.jit(one_frame)
