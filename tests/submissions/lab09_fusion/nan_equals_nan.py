# ---
# kind: wrong
# trap: lets a NaN agree with a NaN
# fails: test_share_that_is_off_is_noticed
# hint: in one reading or in both
# ---

# %% nbgrader={"grade_id": "agrees"}
def agrees(new, old, threshold):
    (new_digits, new_shares), (old_digits, old_shares) = ([np.asarray(part) for part in pair] for pair in (new, old))
    if new_digits.shape != old_digits.shape or new_shares.shape != old_shares.shape:
        return False
    close = np.allclose(new_shares, old_shares, rtol=0, atol=TOLERANCE, equal_nan=True)
    tie = np.abs(old_shares - threshold) <= TOLERANCE
    refused = (new_digits == -1) | (old_digits == -1)
    return bool(np.all(close) and np.all((new_digits == old_digits) | (tie & refused)))
