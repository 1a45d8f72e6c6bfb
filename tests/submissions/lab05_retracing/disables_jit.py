# ---
# kind: wrong
# trap: switches jit off around the call
# fails: test_new_size_traces_once
# hint: not itself a compiled function
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


compiled = jax.jit(one_frame)


def track_frame(*arguments):
    with jax.disable_jit():
        return compiled(*arguments)


track_frame.__name__ = "one_frame"
