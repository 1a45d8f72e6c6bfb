# ---
# kind: alternative
# about: shard and row in one number, three folds, uniform draws, values compared pair by pair
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    data = jax.random.key_data(keys)
    same = (data[:, None] == data[None, :]).all(axis=-1)
    return same.sum() == len(data)


# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    carried, mine, _ = jax.random.split(state["key"], 3)
    new = state.copy()
    new["key"], new["step"] = carried, new["step"] + 1
    return [new, jax.random.fold_in(mine, 17)]


# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    numbers = shard * 1_000_000 + rows

    def one(number):
        return jax.random.fold_in(jax.random.fold_in(key, number), 0), jax.random.fold_in(
            jax.random.fold_in(key, number), 1
        )

    noise, mask = jax.vmap(one)(numbers)
    return {"noise": noise, "mask": mask}


# %% nbgrader={"grade_id": "corrupt"}
def corrupt(keys, x):
    def one(noise_key, mask_key, row):
        noise = jax.random.normal(noise_key, row.shape)
        mask = jax.random.uniform(mask_key, row.shape) < 0.75
        return {"noise": noise, "mask": mask, "inputs": jnp.where(mask, row + 0.1 * noise, 0) / 0.75}

    return jax.vmap(one)(keys["noise"], keys["mask"], x)


# %% nbgrader={"grade_id": "train_step"}
def train_step(state, shard, rows, x, y, lr):
    state, key = take_key(state)
    keys = example_keys(key, shard, rows)
    inputs = corrupt(keys, x)["inputs"]
    errors = inputs @ state["params"]["w"] + state["params"]["b"] - y
    params = {
        "w": state["params"]["w"] - lr * 2 * (errors[:, None] * inputs).mean(axis=0),
        "b": state["params"]["b"] - lr * 2 * errors.mean(),
    }
    return {"params": params, "key": state["key"], "step": state["step"]}, {
        "loss": jnp.mean(errors**2),
        "keys": keys,
        "inputs": inputs,
    }
