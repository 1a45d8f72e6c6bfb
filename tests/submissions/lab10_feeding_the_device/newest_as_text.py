# ---
# kind: wrong
# trap: sorts steps as text
# fails: test_permanent_and_newest_stay
# hint: 900 comes after 1000
# ---

# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    """The set of steps to keep."""
    steps = sorted(losses)
    finite = [step for step in steps if not np.isnan(losses[step])]
    milestones = sorted(finite, key=losses.get)[:1]
    rolling = sorted(steps, key=str)[-newest:]
    return {step for step in steps if step % spacing == 0} | set(milestones) | set(rolling)
