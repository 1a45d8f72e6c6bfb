# ---
# kind: alternative
# about: gradients written out by hand, no vmap, no tree.map, bounds checked by a range
# ---

# %% nbgrader={"grade_id": "predict_one"}
def predict_one(params, row):
    total = params["b"]
    for weight, feature in zip(params["w"], row):
        total = total + weight * feature
    return total

# %% nbgrader={"grade_id": "mse"}
def mse(params, x, y):
    errors = x @ params["w"] + params["b"] - y
    return errors @ errors / errors.size

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    # The gradient of the mean squared error, written out.
    errors = x @ params["w"] + params["b"] - y
    pull = 2.0 * errors / errors.size
    return {"w": params["w"] - lr * pull @ x, "b": params["b"] - lr * pull.sum()}, {"loss": (errors**2).mean()}

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    range(array.shape[0])[index]  # a range refuses the same indices as a list, with an IndexError
    hit = jnp.arange(array.shape[0]) == index % array.shape[0]
    return jnp.where(hit.reshape(-1, *[1] * (array.ndim - 1)), value, array)

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    params = state["params"]
    errors = x @ params["w"] + params["b"] - y
    root = jnp.sqrt(1 + errors**2)
    pull = errors / root / errors.size
    return (
        {
            "params": {"w": params["w"] - lr * pull @ x, "b": params["b"] - lr * jnp.sum(pull)},
            "steps": state["steps"] + 1,
        },
        {"loss": jnp.mean(root - 1)},
    )
