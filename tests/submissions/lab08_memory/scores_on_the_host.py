# ---
# kind: wrong
# trap: fetches each score to NumPy, which cannot be traced
# fails: test_mean_is_over_every_key, test_variance_divides_by_one_less, test_variance_survives_an_offset, test_keys_stay_in_the_budget
# hint: should be float32
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = np.stack([np.asarray(noisy_score(network, x, key)) for key in keys])
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)
