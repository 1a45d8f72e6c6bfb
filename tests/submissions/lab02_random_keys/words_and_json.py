# ---
# kind: alternative
# about: keys compared as typed values, a three-way split, uses folded first, one vmap for both draws, a jitted step, JSON text
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    return len({words(key) for key in keys}) == len(keys)


# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    going_on, _, mine = jax.random.split(state["key"], 3)
    return dict(state, key=going_on, step=state["step"] + 1), mine


# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    @jax.vmap
    def of_row(row):
        return {
            name: jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(key, use), row), shard)
            for use, name in enumerate(("noise", "mask"))
        }

    return of_row(rows)


# %% nbgrader={"grade_id": "corrupt"}
@jax.vmap
def corrupt(keys, row):
    noise = jax.random.normal(keys["noise"], row.shape, row.dtype)
    kept = jax.random.uniform(keys["mask"], row.shape) < 0.75
    return dict(noise=noise, mask=kept, inputs=kept * (row + noise / 10) / 0.75)


# %% nbgrader={"grade_id": "train_step"}
@jax.jit
def train_step(state, shard, rows, x, y, lr):
    following, key = take_key(state)
    report = {"keys": example_keys(key, shard, rows)}
    report["inputs"] = corrupt(report["keys"], x)["inputs"]
    report["loss"], grads = jax.value_and_grad(lambda params: mse(params, report["inputs"], y))(state["params"])
    following["params"] = {name: leaf - lr * grads[name] for name, leaf in state["params"].items()}
    return following, report


# %% nbgrader={"grade_id": "checkpoint"}
import json


def save_state(state):
    key = {"words": jax.random.key_data(state["key"]).tolist(), "kind": str(jax.random.key_impl(state["key"]))}
    params = {name: np.asarray(leaf).tolist() for name, leaf in state["params"].items()}
    return {"json": json.dumps({"key": key, "params": params, "step": int(state["step"])})}


def load_state(saved):
    read = json.loads(saved["json"])
    key = jax.random.wrap_key_data(jnp.array(read["key"]["words"], jnp.uint32), impl=read["key"]["kind"])
    params = {name: jnp.array(numbers, jnp.float32) for name, numbers in read["params"].items()}
    return {"params": params, "key": key, "step": jnp.int32(read["step"])}
