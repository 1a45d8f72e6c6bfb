# ---
# kind: wrong
# trap: divides a by b
# fails: test_ratio_is_b_over_a
# hint: and b on top
# ---

# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    for arm in (a, b):
        finished(arm, clock)
    return median(finished(a, clock) / finished(b, clock) for _ in range(rounds))
