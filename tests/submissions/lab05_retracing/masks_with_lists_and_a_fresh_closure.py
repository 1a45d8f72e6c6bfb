# ---
# kind: alternative
# about: places from a grid, sums instead of a product, NumPy in the first state, a fresh closure under test
# ---

# %% nbgrader={"grade_id": "detections"}
def detections(frame, threshold):
    grid = jnp.stack(jnp.meshgrid(*map(jnp.arange, frame.shape), indexing="ij"), axis=-1).reshape(-1, 2)
    scores, index = jax.lax.top_k(jnp.where(frame > threshold, frame, 0).reshape(-1), SLOTS)
    return grid[index].astype(jnp.float32), scores, scores > 0


# %% nbgrader={"grade_id": "start_state"}
def start_state(position):
    return {
        "position": jax.device_put(np.array(position, np.float32)) + 0,
        "velocity": jnp.zeros_like(jnp.array([1.0, 1.0])),
        "missed": jnp.zeros((), int),
    }


# %% nbgrader={"grade_id": "track_frame"}
def one_frame(state, frame, threshold, gain):
    places, scores, valid = detections(frame, threshold)
    hits = jnp.count_nonzero(valid)
    weights = scores / jnp.maximum(jnp.sum(scores), 1e-6)
    predicted = jax.tree.map(jnp.add, state["position"], state["velocity"])
    error = (hits > 0) * (jnp.sum(weights[:, None] * places, axis=0) - predicted)
    missed = (state["missed"] + 1) * (hits == 0)
    new = {"position": predicted + gain * error, "velocity": state["velocity"] + gain * error / 2}
    return {**new, "missed": missed}


track_frame = jax.jit(one_frame, donate_argnames=())


# %% nbgrader={"grade_id": "compile_guarded"}
def compile_guarded(function, max_traces=1):
    asked = os.environ.get("TRACE_GUARD")
    if asked is None or asked in ["", "0"]:
        guard = lambda f: f
    else:
        guard = eqx.debug.assert_max_traces(max_traces=max_traces)
    return jax.jit(guard(function))


# %% nbgrader={"grade_id": "check_direction"}
def check_direction():
    fresh = jax.jit(lambda v: direction.__wrapped__(v))
    short, long = (np.asarray(fresh(jnp.array(v))) for v in ([-0.001, 0.0], [1.0, -2.0, 2.0]))
    if abs(short[0] + 0.5) > 1e-4 or short[1] != 0:
        raise AssertionError(f"(-0.001, 0) gives {short}, not (-0.5, 0)")
    if np.abs(long * 3.001 - [1, -2, 2]).max() > 1e-3:
        raise AssertionError(f"(1, -2, 2) gives {long}")
