# ---
# kind: wrong
# trap: reports the loss after the update
# fails: test_loss_and_update_are_those_of_the_inputs
# hint: parameters that came in
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    state, key = take_key(state)
    keys = example_keys(key, shard, rows)
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": params}, {"loss": mse(params, inputs, y), "keys": keys, "inputs": inputs}
