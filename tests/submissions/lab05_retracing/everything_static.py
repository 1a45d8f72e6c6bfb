# ---
# kind: wrong
# trap: threshold and gain are static
# fails: test_exposure_is_not_in_the_key, test_second_frame_traces_nothing
# hint: A static argument is part of the key
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
        "missed": jnp.where(found, 0, state["missed"] + 1),
    }


track_frame = jax.jit(one_frame, static_argnames=("threshold", "gain"))
