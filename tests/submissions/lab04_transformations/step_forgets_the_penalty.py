# ---
# kind: wrong
# trap: the penalty is in the loss and not in the step
# fails: test_step_goes_down_both_gradients
# hint: clipped gradient + gradient of the penalty
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(params, x, y, lr, limit, strength):
    losses, each = jax.vmap(jax.value_and_grad(row_loss), in_axes=(None, 0, 0))(params, x, y)
    norms = jnp.sqrt(each["b"] ** 2 + jnp.sum(each["w"] ** 2, axis=1))
    clipped = clipped_gradient(params, x, y, limit)
    new_params = jax.tree.map(lambda p, g: p - lr * g, params, clipped)
    return new_params, {"loss": jnp.mean(losses) + penalty(params, strength), "clipped": jnp.mean(norms > limit)}
