# ---
# kind: wrong
# trap: vmaps the gradients, and clips them in a list
# fails: test_program_does_not_grow_with_the_rows
# hint: unrolled while tracing
# ---

# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    each = gradients(params, x, y)
    clipped = [clip(jax.tree.map(lambda leaf: leaf[i], each), limit) for i in range(len(x))]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves).mean(axis=0), *clipped)
