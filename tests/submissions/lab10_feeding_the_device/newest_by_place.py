# ---
# kind: wrong
# trap: the last entries of the dict are taken for the newest
# fails: test_permanent_and_newest_stay
# hint: stand last in the dict
# ---

# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    """The set of steps to keep."""
    steps = sorted(losses)
    finite = [step for step in steps if not np.isnan(losses[step])]
    milestones = sorted(finite, key=losses.get)[:1]
    rolling = list(losses)[-newest:]
    return {step for step in steps if step % spacing == 0} | set(milestones) | set(rolling)
