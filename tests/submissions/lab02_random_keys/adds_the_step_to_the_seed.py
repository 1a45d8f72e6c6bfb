# ---
# kind: wrong
# trap: takes seed + step for a seed
# fails: test_run_key_decides
# hint: with seed + step
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    seed = jax.random.key_data(state["key"])[1]
    return {**state, "step": state["step"] + 1}, jax.random.key(seed + state["step"])
