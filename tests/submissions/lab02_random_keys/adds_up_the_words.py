# ---
# kind: wrong
# trap: compares sums of the words
# fails: test_different_keys_pass
# hint: a sum is not the key
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    sums = np.asarray(jax.random.key_data(keys)).astype("uint64").sum(axis=1)
    return len(np.unique(sums)) == len(sums)
