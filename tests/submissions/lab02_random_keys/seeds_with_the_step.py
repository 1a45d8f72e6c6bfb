# ---
# kind: wrong
# trap: takes the step number for a seed
# fails: test_run_key_decides
# hint: the step number alone
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    return {**state, "step": state["step"] + 1}, jax.random.key(state["step"])
