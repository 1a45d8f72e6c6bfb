# ---
# kind: wrong
# trap: starts the burst with a function that is built anew
# fails: test_nobody_waits_within_the_burst
# hint: or a build, in between
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    start = clock()
    figures["cold"] = finished(lambda: step(*placed), clock)
    jax.block_until_ready([step(*placed) for _ in range(calls - 1)])
    figures["throughput"] = calls / (clock() - start)
    figures["latency"] = median(finished(lambda: step(*placed), clock) for _ in range(calls))
    return figures | {"report": report_line(placed, calls)}
