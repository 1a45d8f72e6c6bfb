# ---
# kind: wrong
# trap: hands the rate over through a global
# fails: test_no_global_is_written
# hint: should change no global
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    global LR
    LR = lr
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new_params = jax.tree.map(lambda p, g: p - LR * g, state["params"], grads)
    return {"params": new_params, "steps": state["steps"] + 1}, {"loss": loss}
