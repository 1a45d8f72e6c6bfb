# ---
# kind: wrong
# trap: folds in a counter that lives outside of the state
# fails: test_same_state_gives_the_same_key
# hint: a counter outside
# ---

# %% nbgrader={"grade_id": "take_key"}
TAKEN = []


def take_key(state):
    TAKEN.append(None)
    return {**state, "step": state["step"] + 1}, jax.random.fold_in(state["key"], len(TAKEN))
