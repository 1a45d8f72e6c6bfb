# ---
# kind: wrong
# trap: standardises the padded rows as well
# fails: test_padded_rows_come_out_as_zeros
# hint: NaN - mean is NaN
# ---

# %% nbgrader={"grade_id": "standardise"}
def standardise(x, valid):
    mask = valid[:, None]
    mean, spread = jnp.mean(x, axis=0, where=mask), jnp.std(x, axis=0, where=mask)
    return (x - mean) / (spread + 0.1)
