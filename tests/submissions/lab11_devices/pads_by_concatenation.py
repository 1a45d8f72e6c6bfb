# ---
# kind: alternative
# about: np.concatenate, reshard in a step that is jitted already, jax.make_array_from_process_local_data
# ---

# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    missing = BATCH - len(x)
    x = np.concatenate([x, np.zeros((missing, 64), x.dtype)])
    y = np.concatenate([y, np.zeros(missing, y.dtype)])
    valid = np.repeat([True, False], [BATCH - missing, missing])
    rows = NamedSharding(MESH, P("data"))
    cut = [jax.make_array_from_process_local_data(rows, part) for part in (x, y, valid)]
    return {name: jax.device_put(leaf, NamedSharding(MESH, P())) for name, leaf in params.items()}, *cut


# %% nbgrader={"grade_id": "train_step"}
@jax.jit
def train_step(params, x, y, valid, lr):
    weights = valid.astype(jnp.float32)

    def total(params):
        losses, right = row_results(params, x, y)
        return jnp.sum(losses * weights), jnp.sum(right * weights)

    (loss, right), grads = jax.value_and_grad(total, has_aux=True)(params)
    share = 1 / weights.sum()
    new = {name: leaf - (lr * share) * grads[name] for name, leaf in params.items()}
    return new, {"loss": loss * share, "accuracy": right * share}
