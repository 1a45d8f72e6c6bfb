# ---
# kind: wrong
# trap: steps[len(steps) - newest:], which begins at the wrong end where there are fewer
# fails: test_permanent_and_newest_stay
# hint: Of fewer than
# ---

# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    steps = sorted(losses)
    finite = [at for at in steps if np.isfinite(losses[at])]
    best = set(sorted(finite, key=losses.get)[:1])
    return {at for at in steps if at % spacing == 0} | best | set(steps[len(steps) - newest :])
