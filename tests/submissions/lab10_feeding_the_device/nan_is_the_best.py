# ---
# kind: wrong
# trap: min() over losses with NaN
# fails: test_nan_is_not_the_best
# hint: whatever came first
# ---

# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    """The set of steps to keep."""
    steps = sorted(losses)
    finite = [step for step in steps if not np.isnan(losses[step])]
    milestones = [min(losses, key=losses.get)]
    rolling = steps[len(steps) - newest :] if newest < len(steps) else steps
    return {step for step in steps if step % spacing == 0} | set(milestones) | set(rolling)
