# ---
# kind: wrong
# trap: puts the gain into a global that the compiled function reads
# fails: test_exposure_follows_the_arguments
# hint: as old as its trace
# ---

# %% nbgrader={"grade_id": "track_frame"}
GAIN = None


@jax.jit
def _frame(state, frame, threshold):
    places, scores, valid = detections(frame, threshold)
    found = valid.any()
    predicted = state["position"] + state["velocity"]
    error = jnp.where(found, scores @ places / jnp.where(found, scores.sum(), 1) - predicted, 0)
    return {
        "position": predicted + GAIN * error,
        "velocity": state["velocity"] + 0.5 * GAIN * error,
        "missed": jnp.where(found, 0, state["missed"] + 1),
    }


def track_frame(state, frame, threshold, gain):
    global GAIN
    GAIN = gain
    return _frame(state, frame, threshold)
