# ---
# kind: alternative
# about: already compiled, value_and_grad with has_aux, new leaves by .at[...], shallow copies that are rebuilt
# ---

# %% nbgrader={"grade_id": "predict_one"}
@jax.jit
def predict_one(params, row):
    return (params["w"] * row).sum(axis=-1) + params["b"]

# %% nbgrader={"grade_id": "mse"}
@jax.jit
def mse(params, x, y):
    return jnp.square(predict_one(params, x) - y).mean()

# %% nbgrader={"grade_id": "sgd_step"}
def _loss_and_metrics(params, x, y):
    loss = mse(params, x, y)
    return loss, {"loss": loss, "rows": y.size}


@jax.jit
def sgd_step(params, x, y, lr):
    grads, metrics = jax.grad(_loss_and_metrics, has_aux=True)(params, x, y)
    return {name: leaf.at[...].add(-lr * grads[name]) for name, leaf in params.items()}, metrics

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    try:
        list(range(len(array)))[index]
    except IndexError as error:
        raise IndexError(f"{index} is not an index of {len(array)} elements") from error
    return array.at[index].set(value, mode="promise_in_bounds")

# %% nbgrader={"grade_id": "repaired_step"}
@jax.jit
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new = dict(state)
    new["params"] = {name: leaf.at[...].add(-lr * grads[name]) for name, leaf in state["params"].items()}
    new["steps"] = state["steps"].at[...].add(1)
    return new, {"loss": loss}
