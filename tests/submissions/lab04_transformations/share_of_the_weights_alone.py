# ---
# kind: wrong
# trap: leaves the bias out of the norm
# fails: test_share_of_clipped_rows
# hint: over all leaves
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(params, x, y, lr, limit, strength):
    losses, each = jax.vmap(jax.value_and_grad(row_loss), in_axes=(None, 0, 0))(params, x, y)
    norms = jnp.sqrt(jnp.sum(each["w"] ** 2, axis=1)) / 2
    cost, pull = jax.value_and_grad(penalty)(params, strength)
    clipped = clipped_gradient(params, x, y, limit)
    new_params = jax.tree.map(lambda p, g, d: p - lr * (g + d), params, clipped, pull)
    return new_params, {"loss": jnp.mean(losses) + cost, "clipped": jnp.mean(norms > limit)}
