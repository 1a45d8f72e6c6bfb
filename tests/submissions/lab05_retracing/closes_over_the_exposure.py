# ---
# kind: wrong
# trap: closes over the threshold and gain of the first frame
# fails: test_exposure_follows_the_arguments, test_exposure_is_not_in_the_key
# hint: closes over is as old as its trace
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


programs = {}


def track_frame(state, frame, threshold, gain):
    if frame.shape not in programs:
        programs[frame.shape] = jax.jit(lambda state, frame: one_frame(state, frame, threshold, gain))
    return programs[frame.shape](state, frame)
