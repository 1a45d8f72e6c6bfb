# ---
# kind: wrong
# trap: writes into the state that it was given
# fails: test_step_is_counted_and_the_rest_is_kept
# hint: as it was
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    state["key"], step_key = jax.random.split(state["key"])
    state["step"] += 1
    return state, step_key
