# ---
# kind: alternative
# about: jit alone: global sums, global draws, keys one by one
# ---

# %% nbgrader={"grade_id": "train_step"}
def sum_of_losses(params, x, y, valid):
    losses, right = row_results(params, x, y)
    return jnp.sum(jnp.where(valid, losses, 0)), jnp.sum(jnp.where(valid, right, False), dtype=jnp.float32)


def train_step(params, x, y, valid, lr):
    (loss, right), grads = jax.value_and_grad(sum_of_losses, has_aux=True)(params, x, y, valid)
    count = jnp.sum(valid, dtype=jnp.float32)
    new = jax.tree.map(lambda p, g: p - lr * g / count, params, grads)
    return new, {"loss": loss / count, "accuracy": right / count}


# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    return x * jax.random.bernoulli(key, 0.75, x.shape) / 0.75


# %% nbgrader={"grade_id": "processes"}
def my_rows(n, process, processes):
    mine, rest = divmod(n, processes)
    if rest != 0:
        raise ValueError(f"{rest} rows are left over")
    return slice(mine * process, mine * process + mine)


def row_keys(key, n, process, processes):
    rows = range(n)[my_rows(n, process, processes)]
    return jnp.stack([jax.random.fold_in(key, row) for row in rows])
