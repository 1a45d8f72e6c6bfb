# ---
# kind: wrong
# trap: gives the same key at each step
# fails: test_no_two_steps_get_the_same_key
# hint: fold in the step
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    return {**state, "step": state["step"] + 1}, jax.random.fold_in(state["key"], 0)
