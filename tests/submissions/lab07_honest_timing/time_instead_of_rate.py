# ---
# kind: wrong
# trap: returns time for each call as the throughput
# fails: test_burst_ends_with_its_results
# hint: calls for each unit of time
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = median(finished(lambda: step(*placed), clock) for _ in range(calls))
    burst = finished(lambda: [step(*placed) for _ in range(calls)], clock)
    return figures | {"throughput": burst / calls, "report": report_line(placed, calls)}
