# ---
# kind: wrong
# trap: deletes nothing
# fails: test_best_stays
# hint: no others beside the three tiers
# ---

# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    """The set of steps to keep."""
    steps = sorted(losses)
    finite = [step for step in steps if not np.isnan(losses[step])]
    milestones = sorted(finite, key=losses.get)[:1]
    rolling = steps[len(steps) - newest :] if newest < len(steps) else steps
    return set(steps)
