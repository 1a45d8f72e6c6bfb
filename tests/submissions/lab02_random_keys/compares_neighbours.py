# ---
# kind: wrong
# trap: compares each key with the next one alone
# fails: test_any_repeat_is_found
# hint: not neighbours
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    data = np.asarray(jax.random.key_data(keys))
    return bool((data[1:] != data[:-1]).any(axis=1).all())
