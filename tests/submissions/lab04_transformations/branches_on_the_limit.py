# ---
# kind: wrong
# trap: a Python if on the limit
# fails: test_step_traces_once
# hint: an `if` on one of them
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(params, x, y, lr, limit, strength):
    losses, each = jax.vmap(jax.value_and_grad(row_loss), in_axes=(None, 0, 0))(params, x, y)
    norms = jnp.sqrt(each["b"] ** 2 + jnp.sum(each["w"] ** 2, axis=1))
    cost, pull = jax.value_and_grad(penalty)(params, strength)
    if float(norms.max()) > limit:
        clipped = clipped_gradient(params, x, y, limit)
    else:
        clipped = jax.tree.map(lambda leaf: leaf.mean(axis=0), each)
    new_params = jax.tree.map(lambda p, g, d: p - lr * (g + d), params, clipped, pull)
    return new_params, {"loss": jnp.mean(losses) + cost, "clipped": jnp.mean(norms > limit)}
