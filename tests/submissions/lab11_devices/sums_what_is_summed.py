# ---
# kind: wrong
# trap: psum of a gradient that grad has added up already
# fails: test_full_batch_moves_as_one_device
# hint: summed by grad already
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid)
        count = jnp.sum(valid, dtype=jnp.float32)
        loss, right, count = jax.lax.psum((loss, right, count), "data")
        grads = jax.lax.psum(grads, "data")
        new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
        return new, {"loss": loss / count, "accuracy": right / count}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P())(params, x, y, valid, lr)
