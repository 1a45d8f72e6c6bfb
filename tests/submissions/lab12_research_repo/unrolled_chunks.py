# ---
# kind: wrong
# trap: a Python loop over chunks
# fails: test_program_does_not_grow
# hint: A Python loop over chunks
# ---

# %% nbgrader={"grade_id": "gradient_norms"}
# digitnet/evaluate.py
@jax.jit
def gradient_norms(params, x, y):
    """The length of each row's gradient, (n,), a few rows at a time."""

    def norm(row):
        image, label = row
        grads = jax.grad(lambda p: row_losses(p, image[None], label[None])[0])(params)
        return jnp.sqrt(sum(jnp.sum(grad**2) for grad in jax.tree.leaves(grads)))

    parts = [jax.vmap(norm)((x[i : i + 32], y[i : i + 32])) for i in range(0, len(x), 32)]
    return jnp.concatenate(parts)
