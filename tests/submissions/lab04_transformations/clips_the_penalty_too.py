# ---
# kind: wrong
# trap: clips the whole gradient of each row's objective
# fails: test_step_goes_down_both_gradients
# hint: added after the clipping
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(params, x, y, lr, limit, strength):
    def objective(params, row, target):
        return row_loss(params, row, target) + penalty(params, strength)

    losses, each = jax.vmap(jax.value_and_grad(objective), in_axes=(None, 0, 0))(params, x, y)
    norms = jnp.sqrt(jnp.sum(gradients(params, x, y)["w"] ** 2, axis=1) + gradients(params, x, y)["b"] ** 2)
    clipped = jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(clip, in_axes=(0, None))(each, limit))
    new_params = jax.tree.map(lambda p, g: p - lr * g, params, clipped)
    return new_params, {"loss": jnp.mean(losses), "clipped": jnp.mean(norms > limit)}
