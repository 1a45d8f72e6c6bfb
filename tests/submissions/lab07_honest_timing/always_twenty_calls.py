# ---
# kind: wrong
# trap: makes twenty calls, whatever it is asked for
# fails: test_report_is_about_what_was_measured
# hint: the number that was made
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = median(finished(lambda: step(*placed), clock) for _ in range(20))
    burst = finished(lambda: [step(*placed) for _ in range(20)], clock)
    return figures | {"throughput": 20 / burst, "report": report_line(placed, calls)}
