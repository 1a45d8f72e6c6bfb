# ---
# kind: wrong
# trap: brings all rows to every device, then needs no sum
# fails: test_nothing_but_sums_travels
# hint: each of them does the work of all
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    x, y, valid = (jax.reshard(part, NamedSharding(MESH, P())) for part in (x, y, valid))
    (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid)
    count = jnp.sum(valid, dtype=jnp.float32)
    new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
    return new, {"loss": loss / count, "accuracy": right / count}
