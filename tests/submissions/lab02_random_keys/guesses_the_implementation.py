# ---
# kind: wrong
# trap: guesses the implementation from the shape of the data
# fails: test_implementation_survives
# hint: does not tell rbg from unsafe_rbg
# ---

# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    plain = {**state, "key": jax.random.key_data(state["key"])}
    return jax.tree.map(np.asarray, plain)


def load_state(saved):
    state = jax.tree.map(jnp.asarray, saved)
    return {
        **state,
        "key": jax.random.wrap_key_data(state["key"], impl="rbg" if state["key"].size == 4 else "threefry2x32"),
    }
