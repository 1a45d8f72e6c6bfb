# ---
# kind: wrong
# trap: steps[-newest:], which is all of them for 0
# fails: test_permanent_and_newest_stay
# hint: look at the slice
# ---

# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    steps = sorted(losses)
    finite = [at for at in steps if np.isfinite(losses[at])]
    return {at for at in steps if at % spacing == 0} | set(sorted(finite, key=losses.get)[:1]) | set(steps[-newest:])
