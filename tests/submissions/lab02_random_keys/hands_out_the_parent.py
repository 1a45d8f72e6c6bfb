# ---
# kind: wrong
# trap: hands out the key that it has just split
# fails: test_key_that_is_handed_out_is_in_no_state
# hint: two consumers
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    step_key = state["key"]
    key, _ = jax.random.split(step_key)
    return {**state, "key": key, "step": state["step"] + 1}, step_key
