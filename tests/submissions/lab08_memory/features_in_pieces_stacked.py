# ---
# kind: wrong
# trap: lax.map makes the features in pieces and stacks them
# fails: test_rows_stay_in_the_budget
# hint: pieces that are stacked
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    f = jax.lax.map(lambda row: features(network, row), x, batch_size=128)
    return f.T @ f + strength * jnp.eye(128), f.T @ y
