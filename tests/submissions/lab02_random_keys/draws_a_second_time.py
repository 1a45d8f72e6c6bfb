# ---
# kind: wrong
# trap: reports other keys than it draws from
# fails: test_inputs_are_those_of_the_reported_keys
# hint: no second draw
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    state, key = take_key(state)
    keys = example_keys(key, shard, rows)
    inputs = corrupt(example_keys(jax.random.fold_in(key, 1), shard, rows), x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": params}, {"loss": loss, "keys": keys, "inputs": inputs}
