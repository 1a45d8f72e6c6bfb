# ---
# kind: wrong
# trap: returns the old step number
# fails: test_step_is_counted_and_the_rest_is_kept
# hint: step one higher
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    key, step_key = jax.random.split(state["key"])
    return {**state, "key": key}, step_key
