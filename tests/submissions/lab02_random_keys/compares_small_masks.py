# ---
# kind: wrong
# trap: demands that two small masks differ
# fails: test_different_keys_pass
# hint: agree by chance
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    masks = {tuple(jax.random.bernoulli(key, 0.5, (2,)).tolist()) for key in keys}
    return len(masks) == len(keys)
