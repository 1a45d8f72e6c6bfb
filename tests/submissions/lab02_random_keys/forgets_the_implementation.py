# ---
# kind: wrong
# trap: saves the data without the implementation
# fails: test_implementation_survives
# hint: the default is a guess
# ---

# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    plain = {**state, "key": jax.random.key_data(state["key"])}
    return jax.tree.map(np.asarray, plain)


def load_state(saved):
    state = jax.tree.map(jnp.asarray, saved)
    return {**state, "key": jax.random.wrap_key_data(state["key"])}
