# ---
# kind: wrong
# trap: reads time.perf_counter instead of its argument
# fails: test_clock_stops_after_the_work
# hint: by the clock that was given
# ---

# %% nbgrader={"grade_id": "finished"}
def finished(call, clock=time.perf_counter):
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start
