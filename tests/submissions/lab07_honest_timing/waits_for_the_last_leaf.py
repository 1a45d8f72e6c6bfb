# ---
# kind: wrong
# trap: waits for the last leaf alone
# fails: test_every_leaf_is_awaited
# hint: any of its leaves may be the slowest
# ---

# %% nbgrader={"grade_id": "finished"}
def finished(call, clock=time.perf_counter):
    start = clock()
    jax.tree.leaves(call())[-1].block_until_ready()
    return clock() - start
