# ---
# kind: wrong
# trap: evaluates in NumPy, in one piece
# fails: test_other_numbers_of_rows_compile_nothing
# hint: batches of `size` rows
# ---

# %% nbgrader={"grade_id": "evaluate"}
def evaluate(params, x, y, size):
    scores = x @ np.asarray(params["w"]) + np.asarray(params["b"])
    loss = np.mean(np.sum((scores - np.eye(10)[y]) ** 2, axis=1))
    return {"loss": float(loss), "accuracy": float(np.mean(scores.argmax(axis=1) == y))}
