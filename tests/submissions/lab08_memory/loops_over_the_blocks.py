# ---
# kind: wrong
# trap: a Python loop over blocks, which is unrolled
# fails: test_rows_stay_in_the_budget
# hint: which is unrolled
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    gram, moment = strength * jnp.eye(128), jnp.zeros(128)
    for begin in range(0, x.shape[0], 128):
        f = features(network, x[begin : begin + 128])
        gram, moment = gram + f.T @ f, moment + f.T @ y[begin : begin + 128]
    return gram, moment
