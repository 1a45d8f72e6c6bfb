# ---
# kind: wrong
# trap: waits for an IndexError that JAX does not raise
# fails: test_index_past_the_end_is_refused
# hint: compare before you set
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    try:
        return array.at[index].set(value)
    except IndexError:
        raise IndexError(f"index {index} is out of bounds")
