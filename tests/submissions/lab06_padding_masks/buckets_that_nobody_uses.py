# ---
# kind: wrong
# trap: gives the bare sequence to the compiled function
# fails: test_bucket_costs_one_compile
# hint: a program for each length
# ---

# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    for size in BUCKETS:
        if len(values) <= size:
            return np.pad(values, (0, size - len(values))), np.arange(size) < len(values)
    raise ValueError("too long")


mean_of = jax.jit(lambda values: values.mean())


def bucketed_means(sequences):
    return [float(mean_of(values)) for values in sequences]
