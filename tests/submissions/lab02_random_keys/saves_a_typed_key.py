# ---
# kind: wrong
# trap: puts the typed key into the checkpoint
# fails: test_saved_state_is_plain
# hint: no file format knows them
# ---

# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    return dict(state)


def load_state(saved):
    return dict(saved)
