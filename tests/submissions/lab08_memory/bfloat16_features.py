# ---
# kind: wrong
# trap: features in bfloat16, with float32 sums
# fails: test_sums_keep_their_precision
# hint: bfloat16 or
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    whole = len(x) // 128 * 128

    def add(sums, block):
        f = features(network, block[0]).astype(jnp.bfloat16).astype("float32")
        return (sums[0] + f.T @ f, sums[1] + f.T @ block[1]), None

    start = strength * jnp.eye(128), jnp.zeros(128)
    sums, _ = jax.lax.scan(add, start, (x[:whole].reshape(-1, 128, 16), y[:whole].reshape(-1, 128)))
    return add(sums, (x[whole:], y[whole:]))[0]
