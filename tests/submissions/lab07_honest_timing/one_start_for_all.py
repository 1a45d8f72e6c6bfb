# ---
# kind: wrong
# trap: subtracts the start of another process
# fails: test_own_start_is_subtracted
# hint: the process that ran it
# ---

# %% nbgrader={"grade_id": "peaks"}
def peaks(arms, start):
    empty = start().peak_mb
    needed = {}
    for name, arm in arms.items():
        process = start()
        process.run(arm)
        needed[name] = process.peak_mb - empty
    return needed
