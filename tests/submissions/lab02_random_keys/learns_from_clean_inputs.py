# ---
# kind: wrong
# trap: takes loss and gradient of the clean inputs
# fails: test_loss_and_update_are_those_of_the_inputs
# hint: The clean x
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    state, key = take_key(state)
    keys = example_keys(key, shard, rows)
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], x, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": params}, {"loss": loss, "keys": keys, "inputs": inputs}
