# ---
# kind: wrong
# trap: takes the first two words for the whole key, which an rbg key is not
# fails: test_different_keys_pass
# hint: of any implementation
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    data = np.asarray(jax.random.key_data(keys)).astype(np.uint64)
    numbers = data[:, 0] * 2**32 + data[:, 1]
    return len(set(numbers.tolist())) == len(numbers)
