# ---
# kind: wrong
# trap: makes the zeros by a product with the mask
# fails: test_padded_rows_come_out_as_zeros
# hint: choose the zeros with jnp.where
# ---

# %% nbgrader={"grade_id": "standardise"}
def standardise(x, valid):
    mask = valid[:, None]
    mean, spread = jnp.mean(x, axis=0, where=mask), jnp.std(x, axis=0, where=mask)
    return (x - mean) / (spread + 0.1) * mask.astype(jnp.float32)
