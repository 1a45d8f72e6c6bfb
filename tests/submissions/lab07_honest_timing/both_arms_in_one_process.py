# ---
# kind: wrong
# trap: runs both arms in one process
# fails: test_each_arm_has_its_own_process
# hint: inherits the peak of the first
# ---

# %% nbgrader={"grade_id": "peaks"}
def peaks(arms, start):
    process = start()
    before = process.peak_mb
    needed = {}
    for name, arm in arms.items():
        process.run(arm)
        needed[name] = process.peak_mb - before
    return needed
