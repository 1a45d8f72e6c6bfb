# ---
# kind: wrong
# trap: keeps the old position in a frame without hits
# fails: test_frame_without_hits_coasts
# hint: the position moves by the velocity
# ---

# %% nbgrader={"grade_id": "track_frame"}
def one_frame(state, frame, threshold, gain):
    places, scores, valid = detections(frame, threshold)
    found, total = valid.any(), scores.sum()
    predicted = state["position"] + state["velocity"]
    measured = scores @ places / jnp.where(found, total, 1)
    error = jnp.where(found, measured - predicted, 0)
    return {
        "position": jnp.where(found, predicted + gain * error, state["position"]),
        "velocity": state["velocity"] + 0.5 * gain * error,
        "missed": jnp.where(found, 0, state["missed"] + 1),
    }


track_frame = jax.jit(one_frame)
