# ---
# kind: wrong
# trap: returns the new weights cut by rows
# fails: test_parameters_stay_whole, test_two_steps_are_one_compile
# hint: Cut, they are gathered in the next
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid)
    count = jnp.sum(valid, dtype=jnp.float32)
    new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
    new["w"] = jax.reshard(new["w"], NamedSharding(MESH, P("data")))
    return new, {"loss": loss / count, "accuracy": right / count}
