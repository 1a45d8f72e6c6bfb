# ---
# kind: wrong
# trap: averages the means of the devices
# fails: test_rows_have_equal_weight
# hint: A mean of local means
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
        loss, right, grads = jax.tree.map(lambda part: part / count, (loss, right, grads))
        loss, right, grads = jax.lax.pmean((loss, right, grads), "data")
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": loss, "accuracy": right}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P())(params, x, y, valid, lr)
