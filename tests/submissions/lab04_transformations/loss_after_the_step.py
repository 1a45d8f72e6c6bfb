# ---
# kind: wrong
# trap: reports the loss of the new parameters
# fails: test_loss_is_from_before_the_step
# hint: belongs to the next step
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(params, x, y, lr, limit, strength):
    losses, each = jax.vmap(jax.value_and_grad(row_loss), in_axes=(None, 0, 0))(params, x, y)
    norms = jnp.sqrt(each["b"] ** 2 + jnp.sum(each["w"] ** 2, axis=1))
    cost, pull = jax.value_and_grad(penalty)(params, strength)
    clipped = clipped_gradient(params, x, y, limit)
    new_params = jax.tree.map(lambda p, g, d: p - lr * (g + d), params, clipped, pull)
    after = jnp.mean(jax.vmap(row_loss, in_axes=(None, 0, 0))(new_params, x, y)) + penalty(new_params, strength)
    return new_params, {"loss": after, "clipped": jnp.mean(norms > limit)}
