# ---
# kind: wrong
# trap: cuts what is too long
# fails: test_smallest_bucket_that_holds
# hint: cutting changes the answer
# ---

# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    for size in BUCKETS:
        if len(values) <= size:
            return np.pad(values, (0, size - len(values))), np.arange(size) < len(values)
    return values[: BUCKETS[-1]], np.ones(BUCKETS[-1], bool)


@jax.jit
def masked_mean(values, valid):
    return jnp.sum(jnp.where(valid, values, 0)) / jnp.maximum(jnp.sum(valid), 1)


def bucketed_means(sequences):
    return [float(masked_mean(*to_bucket(values))) for values in sequences]
