# ---
# kind: wrong
# trap: reads lr from the global of the port
# fails: test_no_global_decides_the_rate
# hint: depend on the global LR
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    new_params = jax.tree.map(lambda p, g: p - LR * g, state["params"], grads)
    return {"params": new_params, "steps": state["steps"] + 1}, {"loss": loss}
