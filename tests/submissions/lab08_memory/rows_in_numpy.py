# ---
# kind: wrong
# trap: computes the blocks in NumPy, which cannot be traced
# fails: test_every_row_counts_once, test_strength_is_added_once, test_rows_stay_in_the_budget
# hint: NumPy on a tracer
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    x, y = np.asarray(x), np.asarray(y)
    gram, moment = strength * np.eye(128), np.zeros(128)
    for begin in range(0, len(x), 128):
        f = np.tanh(x[begin : begin + 128] @ np.asarray(network["projection"]) + np.asarray(network["shift"]))
        gram, moment = gram + f.T @ f, moment + f.T @ y[begin : begin + 128]
    return gram, moment
