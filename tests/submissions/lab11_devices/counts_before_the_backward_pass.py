# ---
# kind: wrong
# trap: divides by the global count inside the loss
# fails: test_one_all_reduce_carries_all_sums
# hint: needed before the backward pass
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        count = jax.lax.psum(jnp.sum(valid, dtype=jnp.float32), "data")

        def mean(params):
            total, right = sum_of_losses(params, x, y, valid)
            return total / count, right / count

        (loss, right), grads = jax.value_and_grad(mean, has_aux=True)(params)
        loss, right = jax.lax.psum((loss, right), "data")
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": loss, "accuracy": right}

    specs = (P(), P("data"), P("data"), P("data"), P())
    return jax.shard_map(body, mesh=MESH, in_specs=specs, out_specs=P())(params, x, y, valid, lr)
