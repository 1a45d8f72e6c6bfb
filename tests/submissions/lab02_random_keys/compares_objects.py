# ---
# kind: wrong
# trap: compares key objects by identity
# fails: test_any_repeat_is_found
# hint: False for any repeat
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    return len({id(key) for key in list(keys)}) == len(keys)
