# ---
# kind: wrong
# trap: mutates the inner dict through a shallow copy
# fails: test_state_is_left_alone
# hint: copies the outer dict alone
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new = dict(state)
    for name in new["params"]:
        new["params"][name] = new["params"][name] - lr * grads[name]
    new["steps"] = new["steps"] + 1
    return new, {"loss": loss}
