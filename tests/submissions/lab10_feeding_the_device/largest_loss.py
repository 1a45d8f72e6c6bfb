# ---
# kind: wrong
# trap: keeps the step with the largest loss
# fails: test_best_stays
# hint: smallest validation loss
# ---

# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    """The set of steps to keep."""
    steps = sorted(losses)
    finite = [step for step in steps if not np.isnan(losses[step])]
    milestones = sorted(finite, key=losses.get)[-1:]
    rolling = steps[len(steps) - newest :] if newest < len(steps) else steps
    return {step for step in steps if step % spacing == 0} | set(milestones) | set(rolling)
