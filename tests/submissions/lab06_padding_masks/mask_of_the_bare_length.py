# ---
# kind: wrong
# trap: makes the mask from a static count
# fails: test_bucket_costs_one_compile
# hint: that is static
# ---

# %% nbgrader={"grade_id": "buckets"}
from functools import partial


def to_bucket(values):
    for size in BUCKETS:
        if len(values) <= size:
            return np.pad(values, (0, size - len(values))), np.arange(size) < len(values)
    raise ValueError("too long")


@partial(jax.jit, static_argnums=1)
def mean_of_first(values, n):
    return jnp.sum(jnp.where(jnp.arange(len(values)) < n, values, 0)) / n


def bucketed_means(sequences):
    return [float(mean_of_first(to_bucket(values)[0], len(values))) for values in sequences]
