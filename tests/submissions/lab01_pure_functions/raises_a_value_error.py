# ---
# kind: wrong
# trap: raises an error of another kind
# fails: test_index_past_the_end_is_refused, test_index_before_the_start_is_refused
# hint: compare before you set
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    if not -len(array) <= index < len(array):
        raise ValueError(f"index {index} is out of bounds")
    return array.at[index].set(value)
