# ---
# kind: wrong
# trap: switches the check off and takes the first device's gradient
# fails: test_full_batch_moves_as_one_device
# hint: one device's gradient was taken for all
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid)
        count = jnp.sum(valid, dtype=jnp.float32)
        loss, right, total = jax.lax.psum((loss, right, count), "data")
        new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
        return new, {"loss": loss / total, "accuracy": right / total}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y, valid, lr)
