# ---
# kind: wrong
# trap: takes the norms of all gradients first, then a weighted loss
# fails: test_plan_stays_in_the_budget
# hint: at most 400 kB
# ---

# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def norm(image, label):
        grads = jax.grad(digit_loss)(params, image, label)
        return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(grads)))

    weights = 1 / jnp.maximum(1.0, jax.vmap(norm)(images, labels) / limit)

    def weighted(params):
        return jnp.mean(weights * jax.vmap(digit_loss, in_axes=(None, 0, 0))(params, images, labels))

    return jax.grad(weighted)(params)
