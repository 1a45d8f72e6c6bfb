# ---
# kind: wrong
# trap: vmaps over all fields
# fails: test_plan_stays_in_the_budget
# hint: holds the tokens of all at once
# ---

# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def read_all(model, page, corners, threshold):
    return jax.vmap(read_one, in_axes=(None, None, 0, None))(model, page, corners, threshold)
