# ---
# kind: wrong
# trap: splits the key for the state and folds the step into it too
# fails: test_key_that_is_handed_out_is_in_no_state
# hint: the next split or fold
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    step_key = jax.random.fold_in(state["key"], state["step"])
    key, _ = jax.random.split(state["key"])
    return {**state, "key": key, "step": state["step"] + 1}, step_key
