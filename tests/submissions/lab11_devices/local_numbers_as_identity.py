# ---
# kind: wrong
# trap: counts rows from 0 in each process
# fails: test_no_two_rows_share_a_key
# hint: repeats in the next one
# ---

# %% nbgrader={"grade_id": "processes"}
def my_rows(n, process, processes):
    if n % processes:
        raise ValueError("rows and processes do not fit")
    mine = n // processes
    return slice(process * mine, (process + 1) * mine)


def row_keys(key, n, process, processes):
    return jax.vmap(partial(jax.random.fold_in, key))(np.arange(n // processes))
