# ---
# kind: wrong
# trap: saves half of the key as its seed
# fails: test_run_goes_on_from_a_checkpoint
# hint: save the key that is carried
# ---

# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    seed = int(jax.random.key_data(state["key"])[-1])
    return {"params": jax.tree.map(np.asarray, state["params"]), "seed": seed, "step": int(state["step"])}


def load_state(saved):
    key = jax.random.key(saved["seed"])
    return {"params": jax.tree.map(jnp.asarray, saved["params"]), "key": key, "step": jnp.int32(saved["step"])}
