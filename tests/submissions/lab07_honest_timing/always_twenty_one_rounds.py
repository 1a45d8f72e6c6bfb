# ---
# kind: wrong
# trap: makes 21 rounds, whatever it is asked for
# fails: test_rounds_are_made
# hint: as many rounds
# ---

# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    finished(a, clock)
    finished(b, clock)
    ratios = []
    for _ in range(21):
        first = finished(a, clock)
        ratios.append(finished(b, clock) / first)
    return median(ratios)
