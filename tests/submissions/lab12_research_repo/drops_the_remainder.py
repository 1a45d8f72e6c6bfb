# ---
# kind: wrong
# trap: drops the rows that fill no chunk
# fails: test_gradient_norms_stay_in_budget, test_gradient_norms_give_the_same_numbers
# hint: no multiple of a chunk
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

    n = len(x) // 8 * 8
    return jax.lax.map(norm, (x[:n], y[:n]), batch_size=8)
