# ---
# kind: wrong
# trap: returns the key that came in
# fails: test_no_key_comes_twice_in_a_run
# hint: Return the state that take_key gave
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    new, key = take_key(state)
    keys = example_keys(key, shard, rows)
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {"params": params, "key": state["key"], "step": new["step"]}, {"loss": loss, "keys": keys, "inputs": inputs}
