# ---
# kind: wrong
# trap: pads everything to the largest bucket
# fails: test_smallest_bucket_that_holds
# hint: one more should go into the next
# ---

# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    size = BUCKETS[-1]
    if len(values) > size:
        raise ValueError("too long")
    return np.pad(values, (0, size - len(values))), np.arange(size) < len(values)


@jax.jit
def masked_mean(values, valid):
    return jnp.sum(jnp.where(valid, values, 0)) / jnp.maximum(jnp.sum(valid), 1)


def bucketed_means(sequences):
    return [float(masked_mean(*to_bucket(values))) for values in sequences]
