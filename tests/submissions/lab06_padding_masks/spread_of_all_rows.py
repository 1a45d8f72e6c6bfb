# ---
# kind: wrong
# trap: masks the mean and not the spread
# fails: test_statistics_are_those_of_the_valid_rows
# hint: Mean and spread should be taken over the valid rows
# ---

# %% nbgrader={"grade_id": "standardise"}
def standardise(x, valid):
    mask = valid[:, None]
    mean = jnp.mean(x, axis=0, where=mask)
    x = jnp.where(mask, x - mean, 0)
    return x / (x.std(axis=0) + 0.1)
