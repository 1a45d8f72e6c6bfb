# ---
# kind: wrong
# trap: adds the row to the seed, so that the next seed has the same keys
# fails: test_no_two_rows_share_a_key
# hint: or their sum
# ---

# %% nbgrader={"grade_id": "processes"}
def my_rows(n, process, processes):
    if n % processes:
        raise ValueError(n)
    mine = n // processes
    return slice(process * mine, (process + 1) * mine)


def row_keys(key, n, process, processes):
    rows = np.arange(n, dtype="uint32")[my_rows(n, process, processes)]
    first, seed = jax.random.key_data(key)
    return jax.random.wrap_key_data(jnp.stack([jnp.full(len(rows), first), seed + rows], axis=1))
