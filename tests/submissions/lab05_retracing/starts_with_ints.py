# ---
# kind: wrong
# trap: starts with an int position and a Python zero
# fails: test_second_frame_traces_nothing, test_first_state_has_its_form
# hint: Give each leaf its dtype
# ---

# %% nbgrader={"grade_id": "start_state"}
def start_state(position):
    return {"position": jnp.array(position), "velocity": jnp.zeros(2), "missed": 0}
