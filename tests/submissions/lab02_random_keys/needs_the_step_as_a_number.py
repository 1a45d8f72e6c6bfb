# ---
# kind: wrong
# trap: makes a Python number of the step
# fails: test_step_can_be_traced
# hint: needs a number at trace time
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    step = int(state["step"])
    return {**state, "step": step + 1}, jax.random.fold_in(state["key"], step)
