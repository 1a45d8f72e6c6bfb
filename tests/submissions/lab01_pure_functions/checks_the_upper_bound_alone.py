# ---
# kind: wrong
# trap: checks the upper bound alone
# fails: test_index_before_the_start_is_refused
# hint: A check of the upper bound alone
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    if index >= len(array):
        raise IndexError(index)
    return array.at[index].set(value)
