# ---
# kind: alternative
# about: vjp, a copied dict that is written to, a list as the pair, an array rebuilt by stack
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    value, pullback = jax.vjp(lambda p: mse(p, x, y), params)
    (grads,) = pullback(jnp.ones_like(value))
    new_params = params.copy()
    for name in new_params:
        new_params[name] = new_params[name] - lr * grads[name]
    return [new_params, {"loss": value}]

# %% nbgrader={"grade_id": "checked_set"}
def checked_set(array, index, value):
    position = index + len(array) if index < 0 else index
    if position < 0 or position >= len(array):
        raise IndexError(index)
    rows = list(array)
    rows[position] = jnp.full_like(rows[position], value)
    return jnp.stack(rows)

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new = jax.tree.map(lambda leaf: leaf, state)  # new dicts at every level, so they may be written to
    for name in new["params"]:
        new["params"][name] = new["params"][name] - lr * grads[name]
    new["steps"] += 1
    return new, dict(loss=loss)
