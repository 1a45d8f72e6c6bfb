# ---
# kind: wrong
# trap: waits for each call of the burst
# fails: test_nobody_waits_within_the_burst
# hint: could have been enqueued meanwhile
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = median(finished(lambda: step(*placed), clock) for _ in range(calls))
    burst = sum(finished(lambda: step(*placed), clock) for _ in range(calls))
    return figures | {"throughput": calls / burst, "report": report_line(placed, calls)}
