# ---
# kind: wrong
# trap: carries the sums in bfloat16
# fails: test_every_row_counts_once
# hint: the sum over all rows
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    whole = len(x) // 128 * 128

    def add(sums, block):
        f = features(network, block[0])
        return ((sums[0] + f.T @ f).astype("bfloat16"), (sums[1] + f.T @ block[1]).astype("bfloat16")), None

    start = (strength * jnp.eye(128)).astype("bfloat16"), jnp.zeros(128, "bfloat16")
    sums, _ = jax.lax.scan(add, start, (x[:whole].reshape(-1, 128, 16), y[:whole].reshape(-1, 128)))
    return jax.tree.map(jnp.float32, add(sums, (x[whole:], y[whole:]))[0])
