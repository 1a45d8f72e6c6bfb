# ---
# kind: wrong
# trap: adds up step and row
# fails: test_no_key_comes_twice_in_a_run
# hint: do not add up step and row
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    key = jax.random.fold_in(state["key"], shard)
    numbers = state["step"] + rows
    keys = dict(
        zip(("noise", "mask"), jax.vmap(lambda n: tuple(jax.random.split(jax.random.fold_in(key, n))))(numbers))
    )
    inputs = corrupt(keys, x)["inputs"]
    loss, grads = jax.value_and_grad(mse)(state["params"], inputs, y)
    params = jax.tree.map(lambda p, g: p - lr * g, state["params"], grads)
    return {**state, "params": params, "step": state["step"] + 1}, {"loss": loss, "keys": keys, "inputs": inputs}
