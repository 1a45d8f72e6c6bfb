# ---
# kind: wrong
# trap: keeps and hands out one and the same child
# fails: test_key_that_is_handed_out_is_in_no_state
# hint: Hand out a child
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    key, _ = jax.random.split(state["key"])
    return {**state, "key": key, "step": state["step"] + 1}, key
