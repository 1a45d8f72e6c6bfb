# ---
# kind: wrong
# trap: takes the key out of the saved dict, which loads once
# fails: test_run_goes_on_from_a_checkpoint
# hint: loads twice
# ---

# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    rest = {name: jax.tree.map(np.asarray, state[name]) for name in ("params", "step")}
    return rest | {"key": np.asarray(jax.random.key_data(state["key"])), "impl": str(jax.random.key_impl(state["key"]))}


def load_state(saved):
    saved["key"] = jax.random.wrap_key_data(jnp.asarray(saved["key"]), impl=saved.pop("impl"))
    return saved
