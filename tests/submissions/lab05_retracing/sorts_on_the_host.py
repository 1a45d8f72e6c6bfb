# ---
# kind: wrong
# trap: sorts on the host with NumPy
# fails: test_search_runs_inside_jit
# hint: NumPy cannot sort or search it
# ---

# %% nbgrader={"grade_id": "detections"}
def detections(frame, threshold):
    flat = np.asarray(frame).ravel()
    index = np.argsort(-flat)[:SLOTS]
    valid = flat[index] > threshold
    places = np.stack(np.unravel_index(index, frame.shape), 1).astype("float32")
    return places, np.where(valid, flat[index], 0), valid


# %% nbgrader={"grade_id": "track_frame"}
@jax.jit
def _update(state, places, scores, valid, gain):
    found = valid.any()
    predicted = state["position"] + state["velocity"]
    error = jnp.where(found, scores @ places / jnp.where(found, scores.sum(), 1) - predicted, 0)
    return {
        "position": predicted + gain * error,
        "velocity": state["velocity"] + 0.5 * gain * error,
        "missed": jnp.where(found, 0, state["missed"] + 1),
    }


def track_frame(state, frame, threshold, gain):
    return _update(state, *detections(frame, threshold), gain)
