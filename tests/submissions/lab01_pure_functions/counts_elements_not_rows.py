# ---
# kind: wrong
# trap: takes array.size for the length
# fails: test_rows_are_counted_not_elements
# hint: array.size is 6
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    if not -array.size <= index < array.size:
        raise IndexError(index)
    return array.at[index].set(value)
