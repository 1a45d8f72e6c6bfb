# ---
# kind: wrong
# trap: a pickle, which is neither array nor number nor text
# fails: test_saved_state_is_plain
# hint: neither typed keys nor a pickle
# ---

# %% nbgrader={"grade_id": "checkpoint"}
import pickle


def save_state(state):
    impl = str(jax.random.key_impl(state["key"]))
    plain = jax.tree.map(np.asarray, {**state, "key": jax.random.key_data(state["key"])})
    return {"state": pickle.dumps((impl, plain))}


def load_state(saved):
    impl, state = pickle.loads(saved["state"])
    return {**jax.tree.map(jnp.asarray, state), "key": jax.random.wrap_key_data(jnp.asarray(state["key"]), impl=impl)}
