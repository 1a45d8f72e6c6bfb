# ---
# kind: wrong
# trap: folds the step into a global key
# fails: test_run_key_decides
# hint: A key from a global
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    return {**state, "step": state["step"] + 1}, jax.random.fold_in(KEY, state["step"])
