# ---
# kind: wrong
# trap: replaces the key in the state that goes on
# fails: test_saved_state_is_plain
# hint: should stay as it was
# ---

# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    saved = state
    saved["impl"] = str(jax.random.key_impl(state["key"]))
    saved["key"] = jax.random.key_data(state["key"])
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, str) else np.asarray(leaf), saved)


def load_state(saved):
    key = jax.random.wrap_key_data(jnp.asarray(saved["key"]), impl=saved["impl"])
    return {"params": jax.tree.map(jnp.asarray, saved["params"]), "key": key, "step": jnp.asarray(saved["step"])}
