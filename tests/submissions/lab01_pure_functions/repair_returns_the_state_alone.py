# ---
# kind: wrong
# trap: returns the new state and forgets the metrics
# fails: test_repaired_step_returns_a_pair
# hint: Two things should come back
# ---

# %% nbgrader={"grade_id": "repaired_step"}
def repaired_step(state, x, y, lr):
    grads = jax.grad(robust_loss)(state["params"], x, y)
    return {"params": jax.tree.map(lambda p, g: p - lr * g, state["params"], grads), "steps": state["steps"] + 1}
