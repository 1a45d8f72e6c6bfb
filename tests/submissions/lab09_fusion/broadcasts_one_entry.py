# ---
# kind: wrong
# trap: lets one entry broadcast
# fails: test_other_lengths_do_not_agree
# hint: an array of one entry broadcasts
# ---

# %% nbgrader={"grade_id": "agrees"}
def agrees(new, old, threshold):
    (new_digits, new_shares), (old_digits, old_shares) = (map(np.asarray, pair) for pair in (new, old))
    try:
        close = np.abs(new_shares - old_shares) <= TOLERANCE
        tie = np.abs(old_shares - threshold) <= TOLERANCE
        refused = (new_digits == -1) | (old_digits == -1)
        return bool(np.all(close) and np.all((new_digits == old_digits) | (tie & refused)))
    except ValueError:
        return False
