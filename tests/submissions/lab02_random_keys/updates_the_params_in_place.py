# ---
# kind: wrong
# trap: writes the new parameters into the dict of the state that came in
# fails: test_loss_and_update_are_those_of_the_inputs
# hint: should stay as it was
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    state, key = take_key(state)
    keys = example_keys(key, shard, rows)
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    for name, grad in grads.items():
        state["params"][name] = state["params"][name] - lr * grad
    return state, {"loss": loss, "keys": keys, "inputs": inputs}
