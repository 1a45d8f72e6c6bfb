# ---
# kind: alternative
# about: a scan over chunks whose means and squares are merged (Chan), and a shift by the first score
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    def products(rows, targets):
        f = features(network, rows)
        return jnp.concatenate([f, targets[:, None]], axis=1).T @ f

    size = 64
    whole = x.shape[0] // size
    blocks = jax.lax.fori_loop(
        0,
        whole,
        lambda i, total: (
            total
            + products(
                jax.lax.dynamic_slice(x, (i * size, 0), (size, 16)), jax.lax.dynamic_slice(y, (i * size,), (size,))
            )
        ),
        jnp.zeros((129, 128)),
    )
    both = blocks + products(x[whole * size :], y[whole * size :])
    return both[:-1] + jnp.diag(jnp.full(128, strength)), both[-1]


# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    some = jax.vmap(noisy_score, in_axes=(None, None, 0))

    def merge(running, chunk):
        n, mean, squares = running
        scores = some(network, x, chunk)
        m, its_mean = len(scores), scores.mean(axis=0)
        distance = its_mean - mean
        squares = squares + jnp.sum((scores - its_mean) ** 2, axis=0) + distance**2 * n * m / (n + m)
        return (n + m, mean + distance * m / (n + m), squares), None

    whole = len(keys) // 4 * 4
    zeros = jnp.zeros(len(x))
    running, _ = jax.lax.scan(merge, (0.0, zeros, zeros), keys[:whole].reshape(-1, 4))
    n, mean, squares = running if whole == len(keys) else merge(running, keys[whole:])[0]
    return mean, squares / (n - 1)
