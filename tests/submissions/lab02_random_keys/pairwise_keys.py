# ---
# kind: alternative
# about: jnp.unique, the step folded into a key that stays, one fold of a number for the row and use, a NumPy archive in memory as uint8
# ---

# %% nbgrader={"grade_id": "all_distinct"}
def all_distinct(keys):
    return jnp.unique(jax.random.key_data(keys), axis=0).shape[0] == keys.shape[0]


# %% nbgrader={"grade_id": "take_key"}
def take_key(state):
    parent = jax.random.fold_in(state["key"], state["step"])
    return {"params": state["params"], "key": state["key"], "step": state["step"] + 1}, jax.random.split(parent, 1)[0]


# %% nbgrader={"grade_id": "example_keys"}
def example_keys(key, shard, rows):
    mine = jax.random.fold_in(key, shard)
    each = lambda offset: jax.vmap(lambda row: jax.random.fold_in(mine, 2 * row + offset))(jnp.asarray(rows))
    return {"noise": each(0), "mask": each(1)}


# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    leaves, _ = jax.tree.flatten(state["params"])
    saved = {f"leaf{i}": np.array(leaf) for i, leaf in enumerate(leaves)}
    saved["names"] = list(sorted(state["params"]))
    saved["key"] = [jax.random.key_impl(state["key"]).__str__(), np.array(jax.random.key_data(state["key"]))]
    saved["step"] = np.array(state["step"])
    return saved


def load_state(saved):
    impl, data = saved["key"]
    params = {name: jnp.array(saved[f"leaf{i}"]) for i, name in enumerate(saved["names"])}
    return dict(params=params, key=jax.random.wrap_key_data(data, impl=impl), step=jnp.array(saved["step"]))
