# ---
# kind: wrong
# trap: starts the step count anew
# fails: test_run_goes_on_from_a_checkpoint
# hint: step numbers
# ---

# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    data, impl = jax.random.key_data(state["key"]), str(jax.random.key_impl(state["key"]))
    return {"params": jax.tree.map(np.asarray, state["params"]), "data": np.asarray(data), "impl": impl}


def load_state(saved):
    key = jax.random.wrap_key_data(jnp.asarray(saved["data"]), impl=saved["impl"])
    return {"params": jax.tree.map(jnp.asarray, saved["params"]), "key": key, "step": jnp.int32(0)}
