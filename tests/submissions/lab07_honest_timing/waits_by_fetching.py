# ---
# kind: wrong
# trap: fetches every leaf with np.asarray in order to wait
# fails: test_nothing_is_fetched
# hint: block_until_ready waits alone
# ---

# %% nbgrader={"grade_id": "finished"}
def finished(call, clock=time.perf_counter):
    start = clock()
    jax.tree.map(np.asarray, call())
    return clock() - start
