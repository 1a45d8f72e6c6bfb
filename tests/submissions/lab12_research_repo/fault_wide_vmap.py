# ---
# kind: wrong
# trap: unrepaired: a vmap over all rows
# fails: test_gradient_norms_stay_in_budget
# hint: A vmap over all rows
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

    return jax.vmap(norm)((x, y))
