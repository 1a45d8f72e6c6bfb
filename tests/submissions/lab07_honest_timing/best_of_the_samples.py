# ---
# kind: wrong
# trap: takes the smallest sample
# fails: test_stumbles_leave_the_latency
# hint: largest, smallest
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = min(finished(lambda: step(*placed), clock) for _ in range(calls))
    burst = finished(lambda: [step(*placed) for _ in range(calls)], clock)
    return figures | {"throughput": calls / burst, "report": report_line(placed, calls)}
