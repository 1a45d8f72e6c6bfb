# ---
# kind: wrong
# trap: discards .at
# fails: test_update_is_in_the_new_state
# hint: An .at[...] result that nobody keeps
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new_params = dict(state["params"])
    for name in new_params:
        new_params[name].at[...].add(-lr * grads[name])
    return {"params": new_params, "steps": state["steps"] + 1}, {"loss": loss}
