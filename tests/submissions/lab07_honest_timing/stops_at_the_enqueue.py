# ---
# kind: wrong
# trap: reads the clock when the call returns
# fails: test_clock_stops_after_the_work, test_every_leaf_is_awaited
# hint: the enqueue alone
# ---

# %% nbgrader={"grade_id": "finished"}
def finished(call, clock=time.perf_counter):
    start = clock()
    call()
    return clock() - start
