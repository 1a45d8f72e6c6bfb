# ---
# kind: alternative
# about: shard_map where grad adds up what does not vary; arrays made from callbacks
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    full_x, full_y = np.zeros((BATCH, 64), "float32"), np.zeros(BATCH, "int32")
    full_x[: len(x)], full_y[: len(y)] = x, y
    rows, whole = NamedSharding(MESH, P("data")), NamedSharding(MESH, P())
    parts = [
        jax.make_array_from_callback(part.shape, rows, part.__getitem__)
        for part in (full_x, full_y, np.arange(BATCH) < len(x))
    ]
    return jax.tree.map(lambda leaf: jax.device_put(leaf, whole), params), *parts


# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid)
        loss, right, count = jax.lax.psum((loss, right, jnp.sum(valid, dtype=jnp.float32)), "data")
        return jax.tree.map(lambda p, g: p - lr * g / count, params, grads), {
            "loss": loss / count,
            "accuracy": right / count,
        }

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P())(params, x, y, valid, lr)
