# ---
# kind: wrong
# trap: makes the keys of shard 0 in each process
# fails: test_no_key_comes_twice_in_a_run
# hint: other shards
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    state, key = take_key(state)
    keys = example_keys(key, 0, rows)
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": params}, {"loss": loss, "keys": keys, "inputs": inputs}
