# ---
# kind: wrong
# trap: leaves the biases out
# fails: test_gradient_norms_give_the_same_numbers
# hint: over all four leaves
# ---

# %% nbgrader={"grade_id": "gradient_norms"}
# digitnet/evaluate.py
@jax.jit
def gradient_norms(params, x, y):
    """The length of each row's gradient, (n,), a few rows at a time."""

    def norm(row):
        image, label = row
        grads = jax.grad(lambda p: row_losses(p, image[None], label[None])[0])(params)
        return jnp.sqrt(sum(jnp.sum(grad**2) for grad in (grads["w1"], grads["w2"])))

    return jax.lax.map(norm, (x, y), batch_size=8)
