# ---
# kind: wrong
# trap: rounds down and loses the rest
# fails: test_uneven_parts_are_refused
# hint: rows that no process loads are lost
# ---

# %% nbgrader={"grade_id": "processes"}
def my_rows(n, process, processes):
    mine = n // processes
    return slice(process * mine, (process + 1) * mine)


def row_keys(key, n, process, processes):
    rows = np.arange(n)[my_rows(n, process, processes)]
    return jax.vmap(partial(jax.random.fold_in, key))(rows)
