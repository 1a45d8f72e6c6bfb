# ---
# kind: wrong
# trap: cleans and masks the rows, and takes statistics of all
# fails: test_statistics_are_those_of_the_valid_rows
# hint: the padding leaks into every valid one
# ---

# %% nbgrader={"grade_id": "standardise"}
def standardise(x, valid):
    mask = valid[:, None]
    x = jnp.where(mask, x, 0)
    return jnp.where(mask, (x - x.mean(axis=0)) / (x.std(axis=0) + 0.1), 0)
