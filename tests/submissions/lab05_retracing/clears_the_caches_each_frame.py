# ---
# kind: wrong
# trap: calls jax.clear_caches in each frame
# fails: test_new_size_traces_once, test_second_frame_traces_nothing
# hint: its program is thrown away
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


def track_frame(state, frame, threshold, gain):
    jax.clear_caches()
    return compiled(state, frame, threshold, gain)


track_frame.__name__ = "one_frame"
