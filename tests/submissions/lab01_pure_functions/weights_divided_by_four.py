# ---
# kind: wrong
# trap: divides the gradient of the weights alone by the four rows of the example
# fails: test_weights_move_down_the_gradient, test_update_is_in_the_new_state
# hint: for any number of rows
# ---

# %% nbgrader={"grade_id": "sgd_step"}
def sgd_step(params, x, y, lr):
    errors = x @ params["w"] + params["b"] - y
    grads = {"w": 2 * errors @ x / 4, "b": 2 * jnp.mean(errors)}
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), {"loss": jnp.mean(errors**2)}

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    params = state["params"]
    errors = x @ params["w"] + params["b"] - y
    slopes = errors / jnp.sqrt(1 + errors**2)
    new = {"w": params["w"] - lr * slopes @ x / 4, "b": params["b"] - lr * jnp.mean(slopes)}
    return {"params": new, "steps": state["steps"] + 1}, {"loss": robust_loss(params, x, y)}
