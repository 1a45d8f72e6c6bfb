# ---
# kind: wrong
# trap: counts the first calls
# fails: test_ratio_is_b_over_a
# hint: no first call among the samples
# ---

# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    ratios = []
    for _ in range(rounds):
        first = finished(a, clock)
        ratios.append(finished(b, clock) / first)
    return median(ratios)
