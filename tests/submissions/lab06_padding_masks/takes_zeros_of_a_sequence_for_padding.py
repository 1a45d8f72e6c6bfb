# ---
# kind: wrong
# trap: takes the zeros of the padded array for padding
# fails: test_smallest_bucket_that_holds, test_means_are_those_of_the_sequences
# hint: A value may be 0
# ---

# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    for size in BUCKETS:
        if len(values) <= size:
            padded = np.zeros(size, "float32")
            padded[: len(values)] = values
            return padded, padded != 0
    raise ValueError("too long")


@jax.jit
def masked_mean(values, valid):
    return jnp.sum(values) / jnp.maximum(jnp.sum(valid), 1)


def bucketed_means(sequences):
    return [float(masked_mean(*to_bucket(values))) for values in sequences]
