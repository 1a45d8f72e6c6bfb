# ---
# kind: wrong
# trap: takes one warm call for the latency
# fails: test_stumbles_leave_the_latency
# hint: smallest or first
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = finished(lambda: step(*placed), clock)
    burst = finished(lambda: [step(*placed) for _ in range(calls)], clock)
    return figures | {"throughput": calls / burst, "report": report_line(placed, calls)}
