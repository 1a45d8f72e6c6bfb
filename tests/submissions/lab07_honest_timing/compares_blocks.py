# ---
# kind: wrong
# trap: takes all of a and then all of b
# fails: test_drift_leaves_the_ratio
# hint: take the arms in turn
# ---

# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    for arm in (a, b):
        finished(arm, clock)
    of_a = median(finished(a, clock) for _ in range(rounds))
    return median(finished(b, clock) for _ in range(rounds)) / of_a
