# ---
# kind: wrong
# trap: asks whether the new share is at the threshold
# fails: test_tie_at_the_threshold
# hint: It is the old share that is near
# ---

# %% nbgrader={"grade_id": "agrees"}
def agrees(new, old, threshold):
    (new_digits, new_shares), (old_digits, old_shares) = ([np.asarray(part) for part in pair] for pair in (new, old))
    if new_digits.shape != old_digits.shape or new_shares.shape != old_shares.shape:
        return False
    close = np.abs(new_shares - old_shares) <= TOLERANCE
    tie = np.abs(new_shares - threshold) <= TOLERANCE
    refused = (new_digits == -1) | (old_digits == -1)
    return bool(np.all(close) and np.all((new_digits == old_digits) | (tie & refused)))
