# ---
# kind: wrong
# trap: compares one word of each key
# fails: test_different_keys_pass
# hint: is not the key
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    return len(set(jax.random.key_data(keys)[:, 1].tolist())) == len(keys)
