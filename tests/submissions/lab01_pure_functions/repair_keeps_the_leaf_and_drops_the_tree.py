# ---
# kind: wrong
# trap: keeps the leaf and drops the tree
# fails: test_update_is_in_the_new_state
# hint: the new dict around it
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    for name, leaf in state["params"].items():
        leaf = leaf.at[...].add(-lr * grads[name])
    return {"params": state["params"], "steps": state["steps"] + 1}, {"loss": loss}
