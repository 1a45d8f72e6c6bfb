# ---
# kind: wrong
# trap: discards .at in checked_set
# fails: test_new_array_comes_back
# hint: return that one
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    if not -len(array) <= index < len(array):
        raise IndexError(index)
    array.at[index].set(value)
    return array
