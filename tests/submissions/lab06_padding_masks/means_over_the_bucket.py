# ---
# kind: wrong
# trap: divides by the size of the bucket
# fails: test_means_are_those_of_the_sequences
# hint: not over its bucket
# ---

# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    for size in BUCKETS:
        if len(values) <= size:
            return np.pad(values, (0, size - len(values))), np.arange(size) < len(values)
    raise ValueError("too long")


@jax.jit
def masked_mean(values, valid):
    return jnp.sum(jnp.where(valid, values, 0)) / len(values)


def bucketed_means(sequences):
    return [float(masked_mean(*to_bucket(values))) for values in sequences]
