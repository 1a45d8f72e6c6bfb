# ---
# kind: wrong
# trap: makes the keys from the rows alone
# fails: test_no_two_rows_share_a_key
# hint: fold the row in
# ---

# %% nbgrader={"grade_id": "processes"}
def my_rows(n, process, processes):
    if n % processes:
        raise ValueError(n)
    mine = n // processes
    return slice(process * mine, (process + 1) * mine)


def row_keys(key, n, process, processes):
    rows = np.arange(n)[my_rows(n, process, processes)]
    return jax.vmap(jax.random.key)(rows)
