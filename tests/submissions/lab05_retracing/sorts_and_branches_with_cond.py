# ---
# kind: alternative
# about: argsort and lax.cond, filter_jit with every number made an array, a guard of its own, the plain body tested
# ---

# %% nbgrader={"grade_id": "detections"}
def detections(frame, threshold):
    flat = jnp.reshape(frame, -1)
    order = jnp.argsort(flat, descending=True)[:SLOTS]
    valid = flat[order] > threshold
    rows, columns = order // frame.shape[1], order % frame.shape[1]
    places = jnp.stack([rows, columns], -1).astype(jnp.float32)
    return places, flat[order] * valid, valid


# %% nbgrader={"grade_id": "start_state"}
def start_state(position):
    row, column = position
    return {
        "position": jnp.array([row, column], jnp.float32),
        "velocity": jnp.array([0.0, 0.0]),
        "missed": jnp.array(0, jnp.int32),
    }


# %% nbgrader={"grade_id": "track_frame"}
def one_frame(state, frame, threshold, gain):
    places, scores, valid = detections(frame, threshold)
    predicted = state["position"] + state["velocity"]

    def correct_by_hits():
        error = jnp.average(places, axis=0, weights=scores) - predicted
        velocity = state["velocity"] + 0.5 * gain * error
        return {"position": predicted + gain * error, "velocity": velocity, "missed": jnp.int32(0)}

    def coast():
        return {"position": predicted, "velocity": state["velocity"], "missed": state["missed"] + 1}

    return jax.lax.cond(valid.any(), correct_by_hits, coast)


@jax.jit
def track_frame(state, frame, threshold, gain):
    return one_frame(state, frame, threshold, gain)


# %% nbgrader={"grade_id": "compile_guarded"}
def compile_guarded(function, max_traces=1):
    if (os.environ.get("TRACE_GUARD") or "0") == "0":
        return jax.jit(function)
    traced = []

    def counting(*arguments):
        traced.append(1)
        if len(traced) > max_traces:
            raise RuntimeError(f"{function} was traced {len(traced)} times")
        return function(*arguments)

    return jax.jit(counting)


# %% nbgrader={"grade_id": "check_direction"}
def check_direction():
    body = direction.__wrapped__
    for v in ([0.0005, -0.002], [-30.0, 40.0, 1.0], [0.0, 0.0]):
        v = np.array(v)
        expected = v / (np.linalg.norm(v) + 1e-3)
        np.testing.assert_allclose(body(v.astype("float32")), expected, rtol=1e-4, atol=1e-7)
