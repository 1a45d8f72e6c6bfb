# ---
# kind: wrong
# trap: divides the smallest samples
# fails: test_stumbles_leave_the_ratio
# hint: a mean, a sum and a minimum do
# ---

# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    for arm in (a, b):
        finished(arm, clock)
    pairs = [(finished(a, clock), finished(b, clock)) for _ in range(rounds)]
    return min(second for _, second in pairs) / min(first for first, _ in pairs)
