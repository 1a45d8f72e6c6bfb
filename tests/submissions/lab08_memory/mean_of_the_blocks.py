# ---
# kind: wrong
# trap: averages the blocks
# fails: test_every_row_counts_once, test_strength_is_added_once
# hint: Blocks add up
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    whole = len(x) // 128 * 128

    def add(sums, block):
        f = features(network, block[0])
        return (sums[0] + f.T @ f, sums[1] + f.T @ block[1]), None

    start = strength * jnp.eye(128), jnp.zeros(128)
    sums, _ = jax.lax.scan(add, start, (x[:whole].reshape(-1, 128, 16), y[:whole].reshape(-1, 128)))
    gram, moment = add(sums, (x[whole:], y[whole:]))[0]
    return gram / (len(x) // 128 + 1), moment / (len(x) // 128 + 1)
