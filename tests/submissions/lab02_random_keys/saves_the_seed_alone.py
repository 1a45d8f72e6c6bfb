# ---
# kind: wrong
# trap: saves the seed and not the carried key
# fails: test_run_goes_on_from_a_checkpoint
# hint: A seed is the start of a run
# ---

# %% nbgrader={"grade_id": "checkpoint"}
def save_state(state):
    return {"params": jax.tree.map(np.asarray, state["params"]), "seed": 0, "step": int(state["step"])}


def load_state(saved):
    key = jax.random.key(saved["seed"])
    return {"params": jax.tree.map(jnp.asarray, saved["params"]), "key": key, "step": jnp.int32(saved["step"])}
