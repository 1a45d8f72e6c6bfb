# ---
# kind: wrong
# trap: psum inside grad without the check
# fails: test_full_batch_moves_as_one_device
# hint: Eight times too far
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        def whole(params):
            total, right = sum_of_losses(params, x, y, valid)
            total, right, count = jax.lax.psum((total, right, jnp.sum(valid, dtype=jnp.float32)), "data")
            return total / count, right / count

        (loss, right), grads = jax.value_and_grad(whole, has_aux=True)(params)
        grads = jax.lax.psum(grads, "data")
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": loss, "accuracy": right}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y, valid, lr)
