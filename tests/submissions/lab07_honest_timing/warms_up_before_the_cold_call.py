# ---
# kind: wrong
# trap: warms up before the call that it calls cold
# fails: test_cold_is_the_first_call
# hint: takes the build away
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    finished(lambda: step(*placed), clock)
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = median(finished(lambda: step(*placed), clock) for _ in range(calls))
    burst = finished(lambda: [step(*placed) for _ in range(calls)], clock)
    return figures | {"throughput": calls / burst, "report": report_line(placed, calls)}
