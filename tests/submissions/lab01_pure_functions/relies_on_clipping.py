# ---
# kind: wrong
# trap: relies on clipping
# fails: test_index_past_the_end_is_refused, test_index_before_the_start_is_refused
# hint: JAX drops such a write
# ---

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    return array.at[index].set(value)
