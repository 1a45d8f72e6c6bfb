# ---
# kind: wrong
# trap: counts and sets along the last axis, where the first one was asked for
# fails: test_rows_are_counted_not_elements
# hint: has length 3
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    n = array.shape[-1]
    if not -n <= index < n:
        raise IndexError(f"index {index} is outside an array of length {n}")
    return array.at[..., index].set(value)
