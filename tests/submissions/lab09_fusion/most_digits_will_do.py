# ---
# kind: wrong
# trap: is content with nine digits in ten
# fails: test_another_digit_is_noticed
# hint: also if most are equal
# ---

# %% nbgrader={"grade_id": "agrees"}
def agrees(new, old, threshold):
    (new_digits, new_shares), (old_digits, old_shares) = ([np.asarray(part) for part in pair] for pair in (new, old))
    if new_digits.shape != old_digits.shape or new_shares.shape != old_shares.shape:
        return False
    close = np.abs(new_shares - old_shares) <= TOLERANCE
    tie = np.abs(old_shares - threshold) <= TOLERANCE
    refused = (new_digits == -1) | (old_digits == -1)
    return bool(np.all(close) and np.mean((new_digits == old_digits) | (tie & refused)) > 0.85)
