# ---
# kind: wrong
# trap: counts the cold call among the warm ones
# fails: test_latency_has_no_compile_in_it
# hint: no sample of the warm latency
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = median([figures["cold"], *(finished(lambda: step(*placed), clock) for _ in range(calls - 1))])
    burst = finished(lambda: [step(*placed) for _ in range(calls)], clock)
    return figures | {"throughput": calls / burst, "report": report_line(placed, calls)}
