# ---
# kind: wrong
# trap: starts with a velocity that is weakly typed
# fails: test_second_frame_traces_nothing
# hint: a weak float
# ---

# %% nbgrader={"grade_id": "start_state"}
def start_state(position):
    position = jnp.asarray(position, jnp.float32)
    return {"position": position, "velocity": jnp.full((2,), 0.0), "missed": jnp.int32(0)}
