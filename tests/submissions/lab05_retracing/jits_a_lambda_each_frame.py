# ---
# kind: wrong
# trap: jits a fresh lambda in each frame
# fails: test_new_size_traces_once, test_second_frame_traces_nothing
# hint: made anew
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


def track_frame(*arguments):
    return jax.jit(lambda *a: one_frame(*a))(*arguments)
