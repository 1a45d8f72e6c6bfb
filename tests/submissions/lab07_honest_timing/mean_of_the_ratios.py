# ---
# kind: wrong
# trap: takes the mean of the ratios
# fails: test_stumbles_leave_the_ratio
# hint: a mean, a sum and a minimum do
# ---

# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    for arm in (a, b):
        finished(arm, clock)
    ratios = []
    for _ in range(rounds):
        first = finished(a, clock)
        ratios.append(finished(b, clock) / first)
    return sum(ratios) / rounds
