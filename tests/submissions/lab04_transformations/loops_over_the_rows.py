# ---
# kind: wrong
# trap: a Python loop over the rows
# fails: test_program_does_not_grow_with_the_rows
# hint: unrolled while tracing
# ---

# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    total = jax.tree.map(jnp.zeros_like, params)
    for i in range(len(x)):
        one = clip(jax.grad(row_loss)(params, x[i], y[i]), limit)
        total = jax.tree.map(jnp.add, total, one)
    return jax.tree.map(lambda leaf: leaf / len(x), total)
