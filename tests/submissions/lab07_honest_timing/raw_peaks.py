# ---
# kind: wrong
# trap: reports the peak, start included
# fails: test_own_start_is_subtracted
# hint: Each process has a peak before it runs anything
# ---

# %% nbgrader={"grade_id": "peaks"}
def peaks(arms, start):
    needed = {}
    for name, arm in arms.items():
        process = start()
        process.run(arm)
        needed[name] = process.peak_mb
    return needed
