# ---
# kind: wrong
# trap: adds the strength in every block
# fails: test_strength_is_added_once
# hint: not once for each block
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    whole = len(x) // 128 * 128

    def add(sums, block):
        f = features(network, block[0])
        return (sums[0] + f.T @ f + strength * jnp.eye(128), sums[1] + f.T @ block[1]), None

    start = jnp.zeros((128, 128)), jnp.zeros(128)
    sums, _ = jax.lax.scan(add, start, (x[:whole].reshape(-1, 128, 16), y[:whole].reshape(-1, 128)))
    return add(sums, (x[whole:], y[whole:]))[0]
