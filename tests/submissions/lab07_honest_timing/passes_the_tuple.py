# ---
# kind: wrong
# trap: gives the step one tuple instead of its inputs
# fails: test_latency_is_of_a_finished_call_on_placed_inputs
# hint: step(*inputs)
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    transfer = clock() - start
    run = lambda: step(placed)
    cold = finished(run, clock)
    latency = median([finished(run, clock) for _ in range(calls)])
    burst = finished(lambda: [run() for _ in range(calls)], clock)
    report = report_line(placed, calls)
    return {"transfer": transfer, "cold": cold, "latency": latency, "throughput": calls / burst, "report": report}
