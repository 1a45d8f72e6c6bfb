# ---
# kind: wrong
# trap: stops the clock when the last call is enqueued
# fails: test_burst_ends_with_its_results
# hint: after the last result is ready
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = median(finished(lambda: step(*placed), clock) for _ in range(calls))
    start = clock()
    results = [step(*placed) for _ in range(calls)]
    burst = clock() - start
    jax.block_until_ready(results)
    return figures | {"throughput": calls / burst, "report": report_line(placed, calls)}
