# ---
# kind: wrong
# trap: leaves the mean to the compiler, which has to know the count first
# fails: test_one_all_reduce_carries_all_sums
# hint: A second one comes from a count
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    def mean(params):
        total, right = sum_of_losses(params, x, y, valid)
        count = jnp.sum(valid, dtype=jnp.float32)
        return total / count, right / count

    (loss, right), grads = jax.value_and_grad(mean, has_aux=True)(params)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": loss, "accuracy": right}
