# ---
# kind: wrong
# trap: gives the bare sequence to the compiled function
# fails: test_other_lengths_compile_nothing, test_new_bucket_compiles_once
# hint: a slice of a JAX array
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
