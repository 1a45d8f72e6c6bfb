# ---
# kind: wrong
# trap: splits and does not return the new key
# fails: test_no_two_steps_get_the_same_key
# hint: return the new key
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    key, step_key = jax.random.split(state["key"])
    return {**state, "step": state["step"] + 1}, step_key
