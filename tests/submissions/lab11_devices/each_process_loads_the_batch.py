# ---
# kind: wrong
# trap: loads n rows in each process
# fails: test_processes_load_each_row_once
# hint: not n, and they stand side by side
# ---

# %% nbgrader={"grade_id": "processes"}
def my_rows(n, process, processes):
    if n % processes:
        raise ValueError("rows and processes do not fit")
    return slice(process * n, (process + 1) * n)


def row_keys(key, n, process, processes):
    start = process * (n // processes)
    return jax.vmap(partial(jax.random.fold_in, key))(start + np.arange(n // processes))
