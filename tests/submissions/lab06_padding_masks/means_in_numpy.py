# ---
# kind: wrong
# trap: computes the means with NumPy
# fails: test_bucket_costs_one_compile
# hint: no jitted function computes
# ---

# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    for size in BUCKETS:
        if len(values) <= size:
            return np.pad(values, (0, size - len(values))), np.arange(size) < len(values)
    raise ValueError("too long")


def bucketed_means(sequences):
    return [float(values.mean()) for values in sequences]
