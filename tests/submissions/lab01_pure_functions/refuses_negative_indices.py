# ---
# kind: wrong
# trap: refuses the negative indices of a list
# fails: test_both_ends_are_accepted
# hint: refuses negative indices
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    if not 0 <= index < len(array):
        raise IndexError(index)
    return array.at[index].set(value)
