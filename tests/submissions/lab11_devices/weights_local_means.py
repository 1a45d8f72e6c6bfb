# ---
# kind: wrong
# trap: weights each local mean by its count: 0 / 0 on a device without rows
# fails: test_empty_devices_change_nothing
# hint: A local mean is 0 / 0
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        mine = jax.lax.pcast(params, "data", to="varying")
        (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(mine, x, y, valid)
        count = jnp.sum(valid, dtype=jnp.float32)
        loss, right, grads = jax.tree.map(lambda part: part / count * count, (loss, right, grads))
        loss, right, count, grads = jax.lax.psum((loss, right, count, grads), "data")
        new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
        return new, {"loss": loss / count, "accuracy": right / count}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P())(params, x, y, valid, lr)
