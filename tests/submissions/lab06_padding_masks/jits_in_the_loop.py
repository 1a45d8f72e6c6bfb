# ---
# kind: wrong
# trap: makes the jitted function anew for each sequence
# fails: test_bucket_costs_one_compile
# hint: a jit in the loop
# ---

# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    for size in BUCKETS:
        if len(values) <= size:
            return np.pad(values, (0, size - len(values))), np.arange(size) < len(values)
    raise ValueError("too long")


def bucketed_means(sequences):
    means = []
    for values in sequences:
        mean = jax.jit(lambda v, ok: jnp.sum(jnp.where(ok, v, 0)) / jnp.maximum(jnp.sum(ok), 1))
        means.append(float(mean(*to_bucket(values))))
    return means
