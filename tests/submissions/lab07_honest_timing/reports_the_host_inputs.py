# ---
# kind: wrong
# trap: describes the NumPy inputs in the report
# fails: test_report_is_about_what_was_measured
# hint: where the host had float64
# ---

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    start = clock()
    placed = jax.block_until_ready(place(inputs))
    figures = {"transfer": clock() - start}
    figures["cold"] = finished(lambda: step(*placed), clock)
    figures["latency"] = median(finished(lambda: step(*placed), clock) for _ in range(calls))
    burst = finished(lambda: [step(*placed) for _ in range(calls)], clock)
    shapes = [f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in inputs]
    return figures | {"throughput": calls / burst, "report": "; ".join([*shapes, f"{calls} warm calls"])}
