# ---
# kind: alternative
# about: the unchecked shard_map, with a psum of its own, and a table of keys that is cut as the rows are
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid)
        count = jnp.sum(valid, dtype=jnp.float32)
        loss, right, count, grads = jax.lax.psum((loss, right, count, grads), "data")
        new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
        return new, {"loss": loss / count, "accuracy": right / count}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y, valid, lr)


# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(jnp.arange(len(x)))
    keys = jax.reshard(keys, NamedSharding(mesh, P("data")))

    def body(keys, x):
        return jnp.where(jax.vmap(lambda key: jax.random.bernoulli(key, 0.75, (64,)))(keys), x / 0.75, 0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(keys, x)
