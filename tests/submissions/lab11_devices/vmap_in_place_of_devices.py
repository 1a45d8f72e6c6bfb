# ---
# kind: wrong
# trap: gathers the rows and maps over an axis of eight with vmap
# fails: test_nothing_but_sums_travels
# hint: An all-gather brings rows
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    x, y, valid = (jax.reshard(part, NamedSharding(MESH, P())) for part in (x, y, valid))
    x, y, valid = (part.reshape(8, 8, *part.shape[1:]) for part in (x, y, valid))

    def body(x, y, valid):
        return jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid), jnp.sum(valid, dtype=jnp.float32)

    ((loss, right), grads), count = jax.tree.map(lambda part: part.sum(axis=0), jax.vmap(body)(x, y, valid))
    new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
    return new, {"loss": loss / count, "accuracy": right / count}
