# ---
# kind: wrong
# trap: makes the examples' keys from the key of the new state
# fails: test_examples_use_the_step_key
# hint: two consumers
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    state, key = take_key(state)
    keys = example_keys(state["key"], shard, rows)
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": params}, {"loss": loss, "keys": keys, "inputs": inputs}
