# ---
# kind: wrong
# trap: permanent and rolling ones alone
# fails: test_best_stays
# hint: deletes the best
# ---

# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    """The set of steps to keep."""
    steps = sorted(losses)
    finite = [step for step in steps if not np.isnan(losses[step])]
    milestones = sorted(finite, key=losses.get)[:1]
    rolling = steps[len(steps) - newest :] if newest < len(steps) else steps
    return {step for step in steps if step % spacing == 0} | set(rolling)
