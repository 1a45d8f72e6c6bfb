# ---
# kind: wrong
# trap: splits the key into n, so that the batch size decides
# fails: test_keys_do_not_depend_on_the_processes
# hint: in a batch of another size
# ---

# %% nbgrader={"grade_id": "processes"}
def my_rows(n, process, processes):
    if n % processes:
        raise ValueError("rows and processes do not fit")
    mine = n // processes
    return slice(process * mine, (process + 1) * mine)


def row_keys(key, n, process, processes):
    rows = my_rows(n, process, processes)
    return jax.vmap(partial(jax.random.fold_in, key))(np.arange(n)[rows] + n)
