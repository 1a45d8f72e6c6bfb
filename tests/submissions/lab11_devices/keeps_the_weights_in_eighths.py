# ---
# kind: wrong
# trap: cuts the weights inside the step, and gathers them each time
# fails: test_parameters_stay_whole, test_nothing_but_sums_travels
# hint: Cut, they are gathered in the next
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    params = {"w": jax.reshard(params["w"], NamedSharding(MESH, P("data"))), "b": params["b"]}
    (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid)
    count = jnp.sum(valid, dtype=jnp.float32)
    new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
    return new, {"loss": loss / count, "accuracy": right / count}
