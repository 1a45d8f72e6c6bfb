# ---
# kind: wrong
# trap: folds in the process, then the row's place in it
# fails: test_keys_do_not_depend_on_the_processes
# hint: changes with the cluster
# ---

# %% nbgrader={"grade_id": "processes"}
def my_rows(n, process, processes):
    if n % processes:
        raise ValueError("rows and processes do not fit")
    mine = n // processes
    return slice(process * mine, (process + 1) * mine)


def row_keys(key, n, process, processes):
    mine = jax.random.fold_in(key, process)
    return jax.vmap(partial(jax.random.fold_in, mine))(np.arange(n // processes))
