# ---
# kind: wrong
# trap: collects the scores of each key in a Python list
# fails: test_keys_stay_in_the_budget
# hint: which is unrolled
# ---

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = []
    for number in range(len(keys)):
        scores.append(noisy_score(network, x, keys[number]))
    scores = jnp.stack(scores)
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)
