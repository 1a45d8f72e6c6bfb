# ---
# kind: wrong
# trap: lets the index n through
# fails: test_index_past_the_end_is_refused
# hint: the first index outside is n
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    if index > len(array) or index < -len(array):
        raise IndexError(index)
    return array.at[index].set(value)
