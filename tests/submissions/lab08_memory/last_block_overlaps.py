# ---
# kind: wrong
# trap: a slice at the end is moved back, so that its rows count twice
# fails: test_every_row_counts_once
# hint: short last block
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    def add(number, sums):
        rows = jax.lax.dynamic_slice_in_dim(x, number * 128, 128)
        f = features(network, rows)
        return sums[0] + f.T @ f, sums[1] + f.T @ jax.lax.dynamic_slice_in_dim(y, number * 128, 128)

    return jax.lax.fori_loop(0, -(-len(x) // 128), add, (strength * jnp.eye(128), jnp.zeros(128)))
