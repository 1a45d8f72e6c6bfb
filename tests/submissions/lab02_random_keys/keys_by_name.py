# ---
# kind: alternative
# about: the same fold_in for steps, uses folded by a constant, a checkpoint made by tree.map over leaves
# ---

# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    return {**state, "step": state["step"] + 1}, jax.random.fold_in(state["key"], state["step"])


# %% nbgrader={"grade_id": "example_keys"}
USES = {"noise": 1, "mask": 2}


def example_keys(key, shard, rows):
    def keys_for(number):
        base = jax.random.fold_in(jax.random.fold_in(key, number), shard)
        return jax.vmap(lambda row: jax.random.fold_in(base, row))(rows)

    return {use: keys_for(number) for use, number in USES.items()}


# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    plain = {**state, "key": jax.random.key_data(state["key"])}
    return {"state": jax.tree.map(np.asarray, plain), "impl": str(jax.random.key_impl(state["key"]))}


def load_state(saved):
    state = jax.tree.map(jnp.asarray, saved["state"])
    return {**state, "key": jax.random.wrap_key_data(state["key"], impl=saved["impl"])}
