# ---
# kind: wrong
# trap: reports the loss of the new parameters
# fails: test_loss_is_global_and_before_the_update
# hint: with the parameters that came in
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
        loss, right, count, grads = jax.lax.psum((loss, right, count, grads), "data")
        new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
        after, _ = sum_of_losses(new, x, y, valid)
        return new, {"loss": jax.lax.psum(after, "data") / count, "accuracy": right / count}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P())(params, x, y, valid, lr)
