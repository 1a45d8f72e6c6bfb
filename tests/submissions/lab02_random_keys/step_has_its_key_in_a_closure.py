# ---
# kind: wrong
# trap: takes the step's key from a global
# fails: test_no_key_comes_twice_in_a_run
# hint: no key from a global
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    state, _ = take_key(state)
    key = jax.random.fold_in(KEY, state["step"])
    keys = example_keys(key, shard, rows)
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": params}, {"loss": loss, "keys": keys, "inputs": inputs}
