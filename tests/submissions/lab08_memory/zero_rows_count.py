# ---
# kind: wrong
# trap: fills the last block with zero rows, whose features are not zero
# fails: test_every_row_counts_once
# hint: rows of zeros
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    n, more = len(x), -len(x) % 128
    blocks = jnp.pad(x, ((0, more), (0, 0))).reshape(-1, 128, 16), jnp.pad(y, (0, more)).reshape(-1, 128)

    def add(sums, block):
        f = features(network, block[0])
        return (sums[0] + f.T @ f, sums[1] + f.T @ block[1]), None

    return jax.lax.scan(add, (strength * jnp.eye(128), jnp.zeros(128)), blocks)[0]
