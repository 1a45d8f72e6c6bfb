# ---
# kind: wrong
# trap: compares what both have
# fails: test_other_lengths_do_not_agree
# hint: stops at the shorter one
# ---

# %% nbgrader={"grade_id": "agrees"}
def agrees(new, old, threshold):
    for digit, share, old_digit, old_share in zip(*new, *old, strict=False):
        if not abs(share - old_share) <= TOLERANCE:
            return False
        tie = abs(old_share - threshold) <= TOLERANCE
        if digit != old_digit and not (tie and -1 in (digit, old_digit)):
            return False
    return True
