# ---
# kind: wrong
# trap: grad of a local mean, then pmean, as under pmap
# fails: test_full_batch_moves_as_one_device
# hint: summed by grad already
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        def local(params):
            total, right = sum_of_losses(params, x, y, valid)
            return total / jnp.sum(valid), right / jnp.sum(valid)

        (loss, right), grads = jax.value_and_grad(local, has_aux=True)(params)
        loss, right, grads = jax.lax.pmean((loss, right, grads), "data")
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": loss, "accuracy": right}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P())(params, x, y, valid, lr)
